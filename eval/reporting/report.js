"use strict";
// Texts are set as texts, never as markup: what they hold came from documents, models and the web.
const data = JSON.parse(document.getElementById("data").textContent);
const { systems, metrics, questions, texts } = data;
const $ = (id) => document.getElementById(id);
const STEP = 200; // rows of the list drawn at a time
let shown = questions;
let limit = STEP;

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}
const number = (value, digits) => value === null || value === undefined ? "–" : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
const chip = (text, look) => el("span", { class: "chip " + look }, text);
const colour = (i) => "var(--s" + (i % 6) + ")";
const system = (i) => el("span", { class: "system" }, el("span", { class: "dot", style: "background:" + colour(i) }), systems[i]);
const anchor = (question) => "#q/" + encodeURIComponent(question.id);

// What became of a question, in a word.
function state(row) {
  if (!row) return chip("not run", "none");
  if (row.error || row.a === undefined) return chip("error", "bad");
  if (!row.ok) return chip("refused", "warn");
  const look = { correct: "good", ambiguous: "warn", incorrect: "bad" }[row.verdict];
  return look ? chip(row.verdict, look) : chip("answered", "flat");
}

// ---- the list
const metric = () => metrics.find((m) => m.name === $("metric").value);
function value(question, i, name) {
  const rating = question.rows[i] && question.rows[i].m[name];
  return rating ? rating.v : null;
}
function low(question, i) {
  const m = metric();
  const v = m ? value(question, i, m.name) : null;
  return v !== null && m.up !== null && (m.up ? v < 0.5 : v > 0.5);
}
function spread(question) {
  const values = systems.map((_, i) => value(question, i, $("metric").value)).filter((v) => v !== null);
  return values.length > 1 ? Math.max(...values) - Math.min(...values) : 0;
}
const answered = (rows) => rows.filter((row) => row && row.a !== undefined);
const TESTS = {
  "all": () => true,
  "differs between systems": (q) => spread(q) >= 0.1 || new Set(answered(q.rows).map((r) => r.ok)).size > 1,
  "unscored": (q) => q.rows.some((r) => r && Object.values(r.m).some((m) => m.v === null && !m.na)),
  "errors": (q) => q.rows.some((r) => r && (r.error || r.a === undefined)),
  "refused": (q) => answered(q.rows).some((r) => !r.ok),
  "warnings": (q) => answered(q.rows).some((r) => r.warnings.length),
};
systems.forEach((name, i) => {
  TESTS["wrong in " + name] = (q) => low(q, i);
  if (systems.length > 1) TESTS["wrong only in " + name] = (q) => low(q, i) && systems.every((_, j) => j === i || (!low(q, j) && value(q, j, $("metric").value) !== null));
});
const plain = (text) => text.normalize("NFKC").toLowerCase();
const haystack = (q) => plain([q.id, q.q, q.reference, ...q.answers, ...answered(q.rows).map((r) => r.a[1])].join("\n"));

function select() {
  const words = plain($("words").value).split(/\s+/).filter(Boolean);
  const test = TESTS[$("show").value];
  const group = $("group").value;
  const language = $("language").value;
  shown = questions.filter((q) => test(q) && (!group || q.group === group) && (!language || q.lang === language) && (!words.length || words.every((word) => (q.find = q.find || haystack(q)).includes(word))));
  limit = STEP;
  list();
}
function list() {
  $("list").replaceChildren(...shown.slice(0, limit).map((q) => el("tr", null,
    el("td", { class: "q" }, el("a", { href: anchor(q), lang: q.lang }, q.q), q.group ? el("small", null, " · " + q.group) : null),
    systems.map((name, i) => el("td", { class: "s", "data-label": name }, el("span", { class: "v" }, number(value(q, i, $("metric").value), 2)), state(q.rows[i]))))));
  $("columns").replaceChildren(el("tr", null, el("th", { scope: "col" }, "Question"), systems.map((_, i) => el("th", { scope: "col" }, system(i)))));
  $("count").textContent = shown.length === questions.length ? questions.length.toLocaleString("en") + " questions" : shown.length.toLocaleString("en") + " of " + questions.length.toLocaleString("en") + " questions";
  $("more").hidden = shown.length <= limit;
  $("more").textContent = "Show " + Math.min(STEP, shown.length - limit) + " more";
}

// ---- one question
function text(number, look) {
  const [lang, content] = texts[number];
  return el("p", { class: look, lang }, content);
}
// Only addresses of the web are links; the report says which are.
const cited = (s) => s.url ? el("a", { href: s.url, rel: "noreferrer noopener", target: "_blank" }, s.title) : s.title;

function documentOf(d) {
  return el("details", { class: "doc" + (d.kept ? "" : " dropped") },
    el("summary", null, el("span", { class: "s" }, number(d.s, 2)), el("span", { class: "title" }, d.n ? "[" + d.n + "] " : null, d.title), el("span", null, chip(d.from || "kb", "flat"), " ", d.kept ? chip("kept", "good") : chip("dropped", "none"))),
    d.why ? el("p", { class: "small" }, "Reason: " + d.why) : null,
    text(d.t, "text"),
    d.src ? el("p", { class: "small" }, d.url ? el("a", { href: d.url, rel: "noreferrer noopener", target: "_blank" }, d.src) : d.src) : null);
}
function facts(row) {
  const parts = [number(row.secs, 2) + " s", row.calls + " model calls", row.web + " web searches"];
  if (row.tokens[0] !== null && row.tokens[1] !== null && row.calls) parts.push(number(row.tokens[0], 0) + " + " + number(row.tokens[1], 0) + " tokens");
  if (row.cost !== null) parts.push("US$ " + number(row.cost, 5));
  return parts.join(" · ");
}
function side(row, i) {
  const box = el("section", { style: "--c:" + colour(i), "aria-label": systems[i] }, el("h2", null, system(i), state(row)));
  if (!row) return box;
  if (row.error) box.append(el("p", { class: "answer bad" }, row.error));
  if (row.a === undefined) return box;
  const heading = (title) => el("h3", null, title);
  box.append(el("p", { class: "answer", lang: row.a[0] }, row.a[1] || "(no text)"));
  if (row.sources.length) box.append(heading("Sources"), el("ol", null, row.sources.map((s) => el("li", { value: s.n }, cited(s), " ", chip(s.from || "kb", "flat")))));
  const limits = row.limits ? " (" + row.limits.aggregate + "; thresholds " + row.limits.lower + " and " + row.limits.upper + ", " + row.limits.source + ")" : "";
  if (row.verdict) box.append(heading("Verdict"), el("p", { class: "small" }, row.verdict + ", " + number(row.score, 2) + limits));
  box.append(heading("Path"), el("p", { class: "mono" }, row.path || "–"));
  if (row.search) box.append(heading("Searched for"), el("p", null, row.search));
  if (row.grounded !== null) box.append(heading("Grounded"), el("p", null, row.grounded ? "yes" : "no", row.grounding ? ": " + row.grounding : ""));
  if (row.warnings.length) box.append(heading("Warnings"), el("ul", { class: "small" }, row.warnings.map((w) => el("li", null, w))));
  if (row.docs.length) {
    const kept = row.docs.filter((d) => d.kept).length;
    box.append(heading("Documents: " + kept + " kept, " + (row.docs.length - kept) + " dropped"), ...row.docs.map(documentOf));
  }
  if (row.ctx) box.append(el("details", null, el("summary", { class: "small" }, "Context as handed over: " + row.ctx.length), row.ctx.map((t) => text(t, "right answer"))));
  box.append(el("p", { class: "facts" }, facts(row)));
  return box;
}
function rating(row, name) {
  const r = row && row.m[name];
  if (!r) return "–";
  if (r.na) return el("span", { class: "small" }, "does not apply");
  const repeats = r.all ? el("span", { class: "range" }, " repeats " + r.all.map((v) => number(v, 2)).join(" ")) : null;
  const why = r.why ? el("span", { class: "range" }, " " + r.why.join("; ")) : null;
  return el("span", null, r.v === null ? chip("unscored", "warn") : el("b", null, number(r.v, 3)), repeats, why);
}
function page(question) {
  const order = shown.includes(question) ? shown : questions;
  const at = order.indexOf(question);
  const step = (title, q, key) => q ? el("a", { href: anchor(q), rel: key }, title) : null;
  const known = { true: "in the knowledge base", false: "not in the knowledge base" }[question.in_kb];
  const answerable = { true: "answerable", false: "a refusal is right" }[question.answerable];
  const right = [...question.answers.map((a) => "“" + a + "”")].join(" or ");
  const measured = metrics.filter((m) => question.rows.some((row) => row && row.m[m.name]));
  const rated = measured.filter((m) => question.rows.some((row) => row && row.m[m.name] && !row.m[m.name].na));
  const others = measured.filter((m) => !rated.includes(m)).map((m) => m.name).join(", ");
  $("page").replaceChildren(
    el("nav", { class: "steps", "aria-label": "Questions" }, el("a", { href: "#questions", rel: "up" }, "← All questions"), step("‹ Previous", order[at - 1], "prev"), step("Next ›", order[at + 1], "next"), el("span", null, at + 1 + " of " + order.length)),
    el("section", null,
      el("p", { class: "over" }, question.id),
      el("h1", { lang: question.lang, id: "question" }, question.q),
      el("div", { class: "chips" }, [question.group, known, answerable].filter(Boolean).map((fact) => chip(fact, "flat"))),
      el("div", { class: "known" },
        right ? el("p", { class: "right", lang: question.lang }, el("b", { lang: "en" }, "Right answers"), right) : null,
        question.reference ? el("p", { class: "right", lang: question.lang }, el("b", { lang: "en" }, "Reference"), question.reference) : null,
        question.gold.length ? el("p", { class: "right" }, el("b", null, "Documents that hold it"), question.gold.join(", ")) : null),
      rated.length ? el("div", { class: "scroll" }, el("table", { class: "plain numbers" },
        el("thead", null, el("tr", null, el("th", { scope: "col" }, "Metric"), systems.map((_, i) => el("th", { scope: "col" }, system(i))))),
        el("tbody", null, rated.map((m) => el("tr", null, el("th", { scope: "row", title: m.meaning }, m.name), question.rows.map((row) => el("td", null, rating(row, m.name)))))))) : null,
      others ? el("p", { class: "small" }, "Does not apply here: " + others) : null),
    el("div", { class: "sides" }, question.rows.map(side)));
  document.title = question.q;
}

// ---- moving about: the address says what is shown
const title = document.title;
let place = 0;
function route() {
  const match = /^#q\/(.*)$/s.exec(location.hash);
  let id = null;
  try { id = match && decodeURIComponent(match[1]); } catch { id = match[1]; }
  const question = match && questions.find((q) => q.id === id);
  if (question) {
    if (!$("overview").hidden) place = scrollY;
    page(question);
  }
  const back = !question && $("overview").hidden;
  $("overview").hidden = Boolean(question);
  $("page").hidden = !question;
  if (question) {
    scrollTo({ top: 0, behavior: "instant" });
    $("page").focus({ preventScroll: true });
  } else {
    document.title = title;
    if (back && location.hash === "#questions") scrollTo({ top: place, behavior: "instant" });
    else if (back && location.hash && $(location.hash.slice(1))) $(location.hash.slice(1)).scrollIntoView();
  }
}
function dark() {
  return (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
}
$("theme").setAttribute("aria-pressed", dark());
$("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = dark() ? "light" : "dark";
  $("theme").setAttribute("aria-pressed", dark());
});
const options = (select, names, chosen) => select.append(...names.map((name) => el("option", { value: name, selected: name === chosen }, name)));
options($("metric"), metrics.map((m) => m.name), data.first[0]);
options($("show"), Object.keys(TESTS), "all");
$("group").append(el("option", { value: "" }, "all"));
options($("group"), [...new Set(questions.map((q) => q.group).filter(Boolean))]);
$("group").parentElement.hidden = $("group").options.length < 2;
$("language").parentElement.hidden = new Set(questions.map((q) => q.lang)).size < 2;
$("filter").addEventListener("input", select);
$("filter").addEventListener("submit", (event) => event.preventDefault());
$("more").addEventListener("click", () => { limit += STEP; list(); });
if ($("quality")) $("quality").addEventListener("input", () => {
  for (const chart of document.querySelectorAll(".tradeoff")) chart.hidden = chart.dataset.metric !== $("quality").value;
});
addEventListener("hashchange", route);
addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea")) return;
  const rel = { ArrowLeft: "prev", ArrowRight: "next", Escape: "up" }[event.key];
  const goal = rel && !$("page").hidden && document.querySelector("#page a[rel=" + rel + "]");
  if (goal) goal.click();
});
select();
route();
