// Figures as they are answered: words and numbers were made by the server, rounded to the private side.
import {drawn, el} from "./parts.js";

export function means(figures) {
  const right = figures.guesses;
  const dots = el("div", {class: "guesses", role: "img", "aria-label": `At most ${right} of 100 guesses are right; a coin is right in 50.`});
  for (let n = 0; n < 100; n += 1) dots.append(el("span", {class: n < 50 ? "coin" : n < right ? "more" : ""}));
  return [
    el("p", {class: "large"}, "Somebody who guesses whether a person is in the data is right at most ",
      el("strong", {}, figures.success), " of the time. A coin is right 50\u00a0%."),
    dots,
    el("p", {class: "hint"}, "Of 100 guesses: grey, what a coin gets right; coloured, what your answers may add."),
    el("p", {}, `With a person or without, no result becomes more than ${figures.likelier} times as likely, but for a slack of ${figures.slack}.`),
    el("p", {class: "hint"}, `Total variation ${figures.total_variation}, epsilon ${figures.epsilon} at delta ${figures.delta}. ${figures.protected}.`),
  ];
}

export function errors(figures) {
  return figures.answers.map((answer) => one(answer, figures));
}

function one(answer, figures) {
  const people = figures.rows_per_person > 1 ? `, of ${figures.rows_per_person} rows a person at most` : "";
  const card = el("article", {class: "card", "data-question": answer.name}, el("h3", {}, answer.question));
  if (answer.uniform) {
    card.append(el("p", {class: "within"}, `± ${answer.within}`),
      el("p", {class: "hint"}, "95 of 100 answers are that close."));
  }
  if (!answer.uniform || answer.groups === "discovered") card.append(sizes(answer));
  card.append(el("p", {}, "Rows needed in a group: ", el("strong", {class: "needed"}, answer.needed),
    answer.needed === "–" ? "" : `${people}, to be within ${answer.close}.`));
  const notes = el("ul", {}, ...answer.notes.map((note) => el("li", {}, note)), el("li", {}, `noise: ${answer.noise}`));
  card.append(el("details", {}, el("summary", {}, "What to know about it"), notes));
  return card;
}

function sizes(answer) {
  const head = ["rows in a group", "95 of 100 within ±", ...(answer.groups === "discovered" ? ["not shown"] : [])];
  const rows = answer.sizes.map((size) => el("tr", {}, el("td", {}, size.rows), el("td", {}, size.within),
    ...(answer.groups === "discovered" ? [el("td", {}, size.withheld)] : [])));
  return el("div", {class: "scroll"}, el("table", {},
    el("thead", {}, el("tr", {}, ...head.map((words) => el("th", {scope: "col"}, words)))), el("tbody", {}, ...rows)));
}

export function curve(figures) {
  const points = figures.curve.map(([x, y]) => `${(100 * x).toFixed(2)},${(100 - 100 * y).toFixed(2)}`).join(" ");
  const picture = drawn("svg", {viewBox: "0 0 100 100", role: "img", "aria-label": "People recognised against false alarms"},
    drawn("polygon", {class: "gain", points: `0,100 ${points}`}),
    drawn("rect", {class: "frame", x: 0, y: 0, width: 100, height: 100}),
    drawn("polyline", {class: "chance", points: "0,100 100,0"}),
    drawn("polyline", {class: "attack", points: `0,100 ${points}`}));
  return [
    el("div", {class: "plot"}, el("span", {class: "up"}, "people recognised, at most"), picture,
      el("span", {class: "along"}, "false alarms: others taken for them")),
    el("p", {class: "hint"}, "Both from 0 to 100 %. The dashed line is blind guessing. At each corner of the curve it is the most that anybody can do."),
  ];
}

export function table(kept, forget) {
  if (!kept.length) return [el("p", {class: "hint"}, "Nothing is kept yet.")];
  const names = [...new Set(kept.flatMap((plan) => plan.figures.answers.map((answer) => answer.name)))];
  const line = (words, cell) => el("tr", {}, el("th", {scope: "row"}, words), ...kept.map((plan) => el("td", {}, cell(plan))));
  const found = (plan, name) => plan.figures.answers.find((answer) => answer.name === name);
  const close = (answer) => (answer.uniform ? `± ${answer.within}` : `± ${answer.sizes.at(-2).within} at ${answer.sizes.at(-2).rows} rows`);
  return [el("div", {class: "scroll", tabindex: 0, role: "region", "aria-labelledby": "h-kept"}, el("table", {},
    el("thead", {}, line("promise", (plan) => plan.words)),
    el("tbody", {}, line("a guess is right at most", (plan) => plan.figures.success),
      line("epsilon", (plan) => plan.figures.epsilon),
      ...names.map((name) => line(name, (plan) => (found(plan, name) ? close(found(plan, name)) : "not asked"))),
      ...names.map((name) => line(`${name}: rows needed`, (plan) => found(plan, name)?.needed ?? "–")),
      line("", (plan) => el("button", {type: "button", class: "small", onclick: () => forget(plan)}, "Forget")))))];
}
