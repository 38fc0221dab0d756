
"use strict";
const LOW = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹", NEXT = {ascending: "descending", descending: "none", none: "ascending"};
const words = new Intl.Collator("en", {numeric: true});
const one = text => Number(text.replace(/,| %|^± /g, "").replace(/ × 10(?=[⁻⁰-⁹¹²³])/, "e")
  .replace(/[⁻⁰-⁹¹²³]/g, sign => "-0123456789"[LOW.indexOf(sign)]).replace("−", "-"));
const number = text => Math.max(...text.replace(/^\+(.+) −(?=\S+$)/, "$1;").split(";").map(one)); // of +3 −5 the 5
for (const table of document.querySelectorAll("table.sorts")) {
  const body = table.tBodies[0], published = [...body.rows], heads = [...table.tHead.rows[0].cells];
  for (const head of heads.filter(head => !head.matches(".chart") && published.length > 1)) {
    const at = heads.indexOf(head), button = document.createElement("button");
    const said = row => row.cells[at].textContent.trim();
    const missing = row => ["", "–"].includes(said(row)) || (head.matches(".number") && !Number.isFinite(number(said(row))));
    const numbers = published.every(row => missing(row) || Number.isFinite(number(said(row))));
    const order = (row, other) => numbers ? number(said(row)) - number(said(other)) : words.compare(said(row), said(other));
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const way = NEXT[head.getAttribute("aria-sort") ?? "none"], sign = way === "descending" ? -1 : 1;
      heads.forEach(each => each.removeAttribute("aria-sort"));
      if (way !== "none") head.setAttribute("aria-sort", way);
      table.classList.toggle("sorted", way !== "none");
      const rows = way === "none" ? published : [...body.rows].sort(
        (row, other) => missing(row) - missing(other) || (missing(row) ? 0 : sign * order(row, other)));
      body.append(...rows);
    });
  }
}
