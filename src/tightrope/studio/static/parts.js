// Elements from text, which is never parsed as HTML.
export function el(tag, facts = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(facts)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...inside);
  return made;
}

const SVG = "http://www.w3.org/2000/svg";
export function drawn(tag, facts = {}, ...inside) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(facts)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
}

let fields = 0;
function named(words, control, ...between) {
  fields += 1;
  control.id = `field-${fields}`;
  return el("div", {class: "field"}, el("label", {for: control.id}, words), ...between, control);
}

export function choice(words, pairs, chosen, change, facts = {}) {
  const list = el("select", {onchange: (event) => change(event.target.value), ...facts});
  for (const [value, label] of pairs) list.append(el("option", {value}, label));
  list.value = chosen ?? "";
  return named(words, list);
}

export function field(words, value, change, facts = {}) {
  const input = el("input", {value: value ?? "", oninput: (event) => change(event.target.value.trim()), ...facts});
  return named(words, input);
}

export function number(words, value, change, facts = {}) {
  const read = (said) => change(said === "" || !Number.isFinite(Number(said)) ? null : Number(said));
  return field(words, value, read, {type: "number", step: "any", ...facts});
}

export function radio(name, words, value, chosen, change) {
  const input = el("input", {type: "radio", name, value, checked: value === chosen, onchange: () => change(value)});
  return el("label", {class: "choice"}, input, el("span", {}, words));
}

export function slider(words, stops, place, shown, change) {
  const now = el("output", {class: "now", "aria-hidden": "true"}, shown(stops[place]));
  const input = el("input", {
    type: "range", min: 0, max: stops.length - 1, step: 1, value: place, "aria-valuetext": shown(stops[place]),
    oninput: (event) => {
      const stop = stops[Number(event.target.value)];
      now.textContent = shown(stop);
      event.target.setAttribute("aria-valuetext", shown(stop));
      change(stop);
    },
  });
  const ends = el("span", {class: "ends", "aria-hidden": "true"}, el("span", {}, "stricter"), el("span", {}, "more exact"));
  return el("div", {class: "slider"}, named(words, input, now), ends);
}
