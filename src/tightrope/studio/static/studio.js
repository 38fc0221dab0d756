// The form and its figures. Every number comes from the server.
import {ask} from "./ask.js";
import {choice, el, field, number, radio, slider} from "./parts.js";
import {curve, errors, means, table} from "./show.js";

const at = (id) => document.getElementById(id);
const SAID = {
  attack_success: "attacker's success rate",
  total_variation: "total variation (attacker's advantage)",
  epsilon: "epsilon",
};
const SOON = 180;
let start, wishes, shown = null, kept = [], asking = false, changed = false, ticket = null;

const percent = (said) => `${+(100 * Number(said)).toPrecision(6)} %`;
const value = (said, stop) => (said === "epsilon" ? `epsilon ${stop}` : percent(said === "total_variation" ? stop : stop));
const chance = (stop) => `1 in ${Number((1 / Number(stop)).toPrecision(6)).toLocaleString("en")}`;
const promised = () => (wishes.promise ? `${value(wishes.promise.said, wishes.promise.value)}, delta ${chance(wishes.promise.delta)}` : "the plan's");

function people() {
  const who = wishes.who;
  const columns = start.columns.filter((column) => column.kind !== "other").map((column) => [column.name, column.name]);
  if (who.column && !columns.some(([name]) => name === who.column)) columns.push([who.column, who.column]);  // an expression of the plan
  const say = (facts) => { Object.assign(who, facts); look(); };
  const again = (facts) => { say(facts); people(); };
  const now = who.column ? "column" : who.each_row ? "row" : null;
  const parts = [el("fieldset", {}, el("legend", {}, "Which rows belong to one person?"),
    radio("who", "A column identifies the person", "column", now,
      () => again({column: columns[0][0], each_row: false, max_rows: 1})),
    radio("who", "Each row is a person (one row per person)", "row", now,
      () => again({column: null, each_row: true, max_rows: null, max_rows_per_group: null, max_groups: null})))];
  if (who.column) {
    const whole = (name) => (said) => say({[name]: said === null ? null : Math.trunc(said)});
    parts.push(el("div", {class: "fields"}, choice("Column", columns, who.column, (column) => say({column})),
      number("Maximum rows per person", who.max_rows, whole("max_rows"), {min: 1, step: 1}),
      number("Maximum rows per person in a group", who.max_rows_per_group, whole("max_rows_per_group"), {min: 1, step: 1, placeholder: "all"}),
      number("Maximum groups per person", who.max_groups, whole("max_groups"), {min: 1, step: 1, placeholder: "all"})),
    el("p", {class: "hint"}, "A larger maximum uses more of the data, but needs more noise."));
  }
  at("who").replaceChildren(...parts);
}

function types() {
  at("types-section").hidden = !start.typeless;
  const pairs = start.types.map((type) => [type, type]);
  at("types").replaceChildren(el("div", {class: "fields"}, ...start.columns.map((column) =>
    choice(column.name, pairs, wishes.types[column.name] ?? "text", (type) => {
      wishes.types[column.name] = type;
      questions();
      look();
    }))));
}

const kindOf = (column) => (start.typeless ? wishes.types[column.name] ?? "text" : column.kind);
const those = (kinds) => start.columns.filter((column) => kinds.includes(kindOf(column))).map((column) => [column.name, column.name]);

function questions() {
  at("questions").replaceChildren(...wishes.questions.map(question));
}

function question(wish, place) {
  const drop = el("button", {type: "button", class: "small", "aria-label": `Remove question ${place + 1}`, onclick: () => {
    wishes.questions.splice(place, 1);
    questions();
    look();
  }}, "Remove");
  const body = wish.kept === null || wish.kept === undefined ? chosen(wish) : [el("p", {}, start.asked[wish.kept])];
  const weights = [["0.25", "half as accurate"], ["1", "as accurate as the others"], ["4", "twice as accurate"]];
  return el("div", {class: "card question"}, el("div", {class: "head"}, el("h3", {}, `Question ${place + 1}`), drop), ...body,
    el("div", {class: "fields"}, choice("How important", [["", wish.kept === null || wish.kept === undefined ? "as usual" : "as in the plan"], ...weights], wish.weight ?? "", (said) => {
      wish.weight = said === "" ? null : Number(said);
      look();
    })));
}

function chosen(wish) {
  const kind = start.kinds.find((one) => one.kind === wish.kind);
  const say = (facts) => { Object.assign(wish, facts); look(); };
  const fields = {
    column: () => choice("of the column", [["", "choose …"], ...those(kind.columns)], wish.column, (column) => say({column: column || null})),
    bounds: () => el("div", {class: "fields"},
      number("lowest value", wish.low, (low) => ends(wish, {low})), number("highest value", wish.high, (high) => ends(wish, {high}))),
    q: () => number("fraction of values below it (0.5: the median)", wish.q, (q) => say({q}), {min: 0, max: 1}),
    width: () => number("width of a bin", wish.width, (width) => say({width}), {min: 0}),
  };
  const groups = [["", "no groups: one number"], ...those(start.groups)];
  const parts = [el("div", {class: "fields"},
    choice("What", start.kinds.map((one) => [one.kind, one.words]), wish.kind, (said) => {
      const hasFraction = start.kinds.find((one) => one.kind === said).fields.includes("q");
      Object.assign(wish, {kind: said, q: hasFraction ? 0.5 : null, column: null});
      questions();
      look();
    }), ...kind.fields.map((name) => fields[name]()),
    choice("for each", groups, wish.by?.[0] ?? "", (by) => { Object.assign(wish, {by: by ? [by] : [], keys: []}); questions(); look(); }))];
  if (kind.fields.includes("bounds")) parts.push(el("p", {class: "hint"}, "Use public knowledge about the range, never the data."));
  if (wish.by?.length) {
    parts.push(field("Public groups, separated by commas", wish.said ?? "", (said) => {
      wish.said = said;
      say({keys: said.split(",").map((key) => key.trim()).filter(Boolean).map((key) => typed(key, wish.by[0]))});
    }, {placeholder: "empty: found in the data, small groups are suppressed"}));
  }
  return parts;
}

function ends(wish, facts) {
  Object.assign(wish, facts);
  const known = [wish.low, wish.high].every((end) => end !== null && end !== undefined);
  wish.bounds = known ? [wish.low, wish.high] : null;
  look();
}

function typed(key, column) {
  const kind = kindOf(start.columns.find((one) => one.name === column));
  if (kind === "integer" && /^-?\d+$/.test(key)) return Number(key);
  return kind === "boolean" && /^(true|false)$/.test(key) ? key === "true" : key;
}

function promise() {
  const now = wishes.promise;
  const parts = [];
  if (!now) {
    parts.push(el("p", {}, "The plan has its own budget, with several points."),
      el("button", {type: "button", onclick: () => { wishes.promise = {said: "attack_success", value: "0.6", delta: "1E-8"}; promise(); look(); }}, "Choose another budget"));
  } else {
    const stops = start.ladders[now.said], deltas = start.ladders.delta;
    const nearest = (list, said) => list.reduce((best, stop, place) => (Math.abs(Number(stop) - Number(said)) < Math.abs(Number(list[best]) - Number(said)) ? place : best), 0);
    parts.push(
      el("fieldset", {}, el("legend", {}, "State it as"), ...Object.entries(SAID).map(([said, words]) => radio("said", words, said, now.said, () => {
        const list = start.ladders[said];
        now.value = list[nearest(list, said === "epsilon" ? 1 : said === "attack_success" ? 0.6 : 0.2)];
        now.said = said;
        promise();
        look();
      }))),
      slider(SAID[now.said][0].toUpperCase() + SAID[now.said].slice(1), stops, nearest(stops, now.value), (stop) => value(now.said, stop), (stop) => { now.value = stop; look(); }),
      slider(`delta: the ${start.delta.name}`, deltas, deltas.indexOf(now.delta) < 0 ? nearest(deltas, now.delta) : deltas.indexOf(now.delta), chance, (stop) => { now.delta = stop; look(); }),
      el("p", {class: "hint"}, start.delta.advice));
  }
  const shares = [["1", "all of it"], ["0.5", "half"], ["0.25", "a quarter"], ["0.1", "a tenth"]];
  if (!shares.some(([share]) => Number(share) === Number(wishes.budget_fraction))) shares.push([wishes.budget_fraction, wishes.budget_fraction]);
  parts.push(choice("Fraction of this budget for a release of this plan", shares, shares.find(([share]) => Number(share) === Number(wishes.budget_fraction))[0], (share) => { wishes.budget_fraction = share; look(); }));
  at("promise").replaceChildren(...parts);
}

// The form without the page's own keys.
function said() {
  const own = (wish) => {
    const {low, high, said: keys, ...rest} = wish;
    return rest;
  };
  return {...wishes, questions: wishes.questions.map(own)};
}

async function look() {
  changed = true;
  if (asking) return;
  asking = true;
  while (changed) {
    changed = false;
    const began = performance.now();
    const answer = await ask("look", said());
    document.body.dataset.took = Math.round(performance.now() - began);
    if (!changed) show(answer);
  }
  asking = false;
}

function show(answer) {
  if (answer.shut) return shut(answer.problem);
  const problem = answer.problem ?? null;
  at("problem").hidden = problem === null;
  at("problem").textContent = problem ?? "";
  const words = {exact: "", working: "Working …", bound: `These figures are for a stricter budget (${answer.at ? value(answer.at.said, answer.at.value) : ""}). The figures for your budget are being computed.`};
  at("state").textContent = problem ? "" : words[answer.state];
  document.body.dataset.state = problem ? "problem" : answer.state;
  at("shown").classList.toggle("old", answer.state === "working" || problem !== null);
  for (const id of ["keep", "save", "price"]) at(id).disabled = problem !== null || answer.state !== "exact";
  if (answer.plan) at("text").textContent = answer.plan;
  if (answer.figures) {
    shown = answer.figures;
    at("shown").hidden = false;
    at("means").replaceChildren(...means(shown));
    at("errors").replaceChildren(...errors(shown));
    at("curve").replaceChildren(...curve(shown));
  }
  if (!problem && answer.state !== "exact") setTimeout(look, SOON);
}

function shut(words) {
  at("shut").hidden = false;
  at("shut").textContent = words;
  document.querySelector("main").hidden = true;
}

function compare() {
  at("kept").replaceChildren(...table(kept, (plan) => { kept = kept.filter((other) => other !== plan); compare(); }));
}

at("add").addEventListener("click", () => { wishes.questions.push({kind: "count", by: [], keys: []}); questions(); look(); });
at("keep").addEventListener("click", () => { kept.push({words: promised(), figures: shown}); compare(); });
at("save").addEventListener("click", async () => {
  const answer = await ask("save", said());
  at("done").textContent = answer.problem ?? `Saved: ${answer.saved}`;
});
at("price").addEventListener("click", async () => {
  at("price").disabled = true;
  const answer = await ask("price", said());
  at("price").disabled = false;
  if (answer.problem) {
    at("done").textContent = answer.problem;
    return;
  }
  ticket = answer.ticket;
  at("spends").textContent = answer.spends;
  at("standing").replaceChildren(...answer.standing.map((line) => el("li", {}, line)));
  at("refused").hidden = true;
  at("agree").disabled = false;
  at("paying").showModal();
});
at("cancel").addEventListener("click", () => { ticket = null; at("paying").close(); });
at("agree").addEventListener("click", async () => {
  if (at("agree").disabled || ticket === null) return;
  at("agree").disabled = true;
  at("cancel").disabled = true;
  at("agree").textContent = "Releasing …";
  const answer = await ask("release", {ticket, agreed: true});
  ticket = null;
  at("agree").textContent = "Charge the budget and release";
  at("cancel").disabled = false;
  at("refused").hidden = !answer.problem;
  at("refused").textContent = answer.problem ?? "";
  if (answer.problem) return;
  at("paying").close();
  at("done").replaceChildren("Released, and written to ", el("code", {}, answer.folder), ". ",
    el("a", {href: answer.report, target: "_blank", rel: "noopener"}, "Open the report"));
});
at("said").addEventListener("submit", (event) => event.preventDefault());

start = await ask("start");
if (start.problem) shut(start.problem);
else {
  wishes = start.wishes;
  if (start.title) at("title").textContent = start.title;
  at("out").textContent = start.out;
  for (const part of [people, types, questions, promise, compare]) part();
  look();
}
