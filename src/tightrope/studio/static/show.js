// Shows the server's figures; numbers are already rounded conservatively.
import {drawn, el} from "./parts.js";

export function means(figures) {
  const right = figures.guesses;
  const dots = el("div", {class: "guesses", role: "img", "aria-label": `At most ${right} of 100 guesses are right; of random guesses, 50.`});
  for (let n = 0; n < 100; n += 1) dots.append(el("span", {class: n < 50 ? "coin" : n < right ? "more" : ""}));
  return [
    el("p", {class: "large"}, "An attacker who guesses whether a person is in the data is right at most ",
      el("strong", {}, figures.success), " of the time (random guessing: 50\u00a0%)."),
    dots,
    el("p", {class: "hint"}, "Of 100 guesses: gray, correct by random guessing; colored, more that can be correct because of your answers."),
    el("p", {}, figures.limit),
    el("p", {class: "hint"}, `Total variation ${figures.total_variation}. ${figures.protected}.`),
  ];
}

export function errors(figures) {
  return figures.answers.map((answer) => one(answer, figures));
}

function one(answer, figures) {
  const people = figures.max_rows > 1 ? `, with at most ${figures.max_rows} rows per person` : "";
  const card = el("article", {class: "card", "data-question": answer.name}, el("h3", {}, answer.question));
  if (answer.uniform) {
    card.append(el("p", {class: "within"}, `± ${answer.within}`),
      el("p", {class: "hint"}, "19 times in 20, the error is at most this."));
  }
  if (!answer.uniform || answer.groups === "discovered") card.append(sizes(answer));
  card.append(el("p", {}, "Rows needed in a group: ", el("strong", {class: "needed"}, answer.needed),
    answer.needed === "–" ? "" : `${people}, for an error of at most ${answer.close}.`));
  const notes = el("ul", {}, ...answer.notes.map((note) => el("li", {}, note)), el("li", {}, `noise: ${answer.noise}`));
  card.append(el("details", {}, el("summary", {}, "Details"), notes));
  return card;
}

function sizes(answer) {
  const head = ["rows in a group", "margin of error (95 %)", ...(answer.groups === "discovered" ? ["probability of suppression"] : [])];
  const rows = answer.sizes.map((size) => el("tr", {}, el("td", {}, size.rows), el("td", {}, size.within),
    ...(answer.groups === "discovered" ? [el("td", {}, size.suppressed)] : [])));
  return el("div", {class: "scroll"}, el("table", {},
    el("thead", {}, el("tr", {}, ...head.map((words) => el("th", {scope: "col"}, words)))), el("tbody", {}, ...rows)));
}

export function curve(figures) {
  const points = figures.curve.map(([x, y]) => `${(100 * x).toFixed(2)},${(100 - 100 * y).toFixed(2)}`).join(" ");
  const picture = drawn("svg", {viewBox: "0 0 100 100", role: "img", "aria-label": "True positive rate by false positive rate"},
    drawn("polygon", {class: "gain", points: `0,100 ${points}`}),
    drawn("rect", {class: "frame", x: 0, y: 0, width: 100, height: 100}),
    drawn("polyline", {class: "chance", points: "0,100 100,0"}),
    drawn("polyline", {class: "attack", points: `0,100 ${points}`}));
  return [
    el("div", {class: "plot"}, el("span", {class: "up"}, "true positive rate, at most"), picture,
      el("span", {class: "along"}, "false positive rate")),
    el("p", {class: "hint"}, "Both from 0 to 100 %. The dashed line is random guessing. Each corner of the curve is an upper limit for every attacker."),
  ];
}

export function table(kept, forget) {
  if (!kept.length) return [el("p", {class: "hint"}, "Keep the figures of a plan to compare them here.")];
  const names = [...new Set(kept.flatMap((plan) => plan.figures.answers.map((answer) => answer.name)))];
  const line = (words, cell) => el("tr", {}, el("th", {scope: "row"}, words), ...kept.map((plan) => el("td", {}, cell(plan))));
  const found = (plan, name) => plan.figures.answers.find((answer) => answer.name === name);
  const close = (answer) => (answer.uniform ? `± ${answer.within}` : `± ${answer.sizes.at(-2).within} at ${answer.sizes.at(-2).rows} rows`);
  return [el("div", {class: "scroll", tabindex: 0, role: "region", "aria-labelledby": "h-kept"}, el("table", {},
    el("thead", {}, line("budget", (plan) => plan.words)),
    el("tbody", {}, line("attacker's success, at most", (plan) => plan.figures.success),
      line("epsilon", (plan) => plan.figures.epsilon),
      ...names.map((name) => line(name, (plan) => (found(plan, name) ? close(found(plan, name)) : "no such question"))),
      ...names.map((name) => line(`${name}: rows needed`, (plan) => found(plan, name)?.needed ?? "–")),
      line("", (plan) => el("button", {type: "button", class: "small", onclick: () => forget(plan)}, "Forget")))))];
}
