// A search while it runs: points as they come in, its state in words, details, pins; all of it comes back after a cut.
import { say } from "./base.js";
import { ask, ended } from "./job.js";
import { Plane, unpack } from "./plane.js";

const known = JSON.parse(document.getElementById("plane-data").textContent);
const host = document.getElementById("plane"), tip = host.querySelector(".tip"), said = document.getElementById("plane-said");
const aside = document.getElementById("candidate"), table = document.getElementById("frontier"), top = document.getElementById("progress");
const csrf = document.querySelector('input[name="csrf"]').value;
const numbers = new Intl.NumberFormat("en"), digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 5 });
const axes = `study=${known.study}&risk=${encodeURIComponent(known.risk)}&loss=${encodeURIComponent(known.loss)}`;
const home = `/projects/${known.project}`;
let last = 0, state = known.state, job = known.job, dirty = false, fetching = null, stale = false;
const OVER = ["done", "failed", "cancelled"];
const WORDS = { queued: "Waiting for its turn.", running: "Searching.", paused: "Paused.", done: "Done.", failed: "Stopped by a fault.", cancelled: "Cancelled." };

// Less is better on both axes: where it is not, the points come turned, and the axis says so.
const turned = (way) => ({ higher: (value) => -value, "nearer 0": Math.abs })[way] ?? ((value) => value);
const named = (way, name) => ({ higher: `−${name}`, "nearer 0": `|${name}|` })[way] ?? name;
const [turnLoss, turnRisk] = known.better.map(turned);
const fresh = ([ids, loss, risk]) => { // points come in the order of their numbers; some come twice after a cut
  let from = 0;
  while (from < ids.length && ids[from] <= last) from++;
  if (from < ids.length) last = ids[ids.length - 1];
  plane.add(ids.subarray(from), loss.subarray(from), risk.subarray(from));
  if (from < ids.length) stale = true;
};

const pinned = new Set(known.pins);
const plane = new Plane(host, [named(known.better[0], known.loss), named(known.better[1], known.risk)], told);
plane.pins = pinned;
plane.predicted = known.predicted.map(([x, y]) => [turnLoss(x), turnRisk(y)]);
window.plane = plane;


async function points() {
  if (fetching) { dirty = true; return fetching; }
  fetching = (async () => {
    do {
      dirty = false;
      const answer = await ask(`/api/v1/studies/${known.study}/points?after=${last}&risk=${encodeURIComponent(known.risk)}&loss=${encodeURIComponent(known.loss)}`, { headers: {} });
      if (!answer.ok) return;
      const to = Number(answer.headers.get("X-Last") ?? last);
      fresh(unpack(await answer.arrayBuffer()));
      last = Math.max(last, to);
    } while (dirty);
  })().finally(() => { fetching = null; });
  return fetching;
}

// The table under the plane, and what is said aloud, follow every five seconds at most.
let renewing = false;
async function renew() {
  if (!stale || renewing) return;
  renewing = true; stale = false;
  try {
    said.textContent = `${numbers.format(plane.count)} done, frontier ${numbers.format(plane.frontier.length)}.`;
    const answer = await ask(`${home}/search/frontier?${axes}`, { headers: { Accept: "text/html" } });
    if (answer.ok && !table.contains(document.activeElement)) { table.innerHTML = await answer.text(); }
  } catch { /* the next round tries again */ } finally { renewing = false; }
}
setInterval(renew, 5000);

function progress(now) {
  state = now.state ?? state;
  const { done = 0, total = 0 } = now;
  top.querySelector("[data-state]").textContent = WORDS[state];
  let words = `${numbers.format(done)} of ${numbers.format(total)}`;
  if (state === "running") {
    if (now.attempts > 1) words += ` (attempt ${now.attempts})`;
    if (now.rate) words += `, ${digits.format(Number(now.rate.toPrecision(2)))} per s`;
    if (now.left !== null && now.left !== undefined) words += `, ${left(now.left)} left`;
  }
  top.querySelector("[data-words]").textContent = words;
  const bar = top.querySelector("progress");
  if (bar && total) { bar.max = total; bar.value = done; }
  for (const form of top.querySelectorAll("[data-states]")) form.hidden = !form.dataset.states.split(" ").includes(state);
}
const left = (seconds) => (seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`);

// Events tell that there is something; a stream that was refused or cut is replaced by asking every two seconds.
let stream = null, timer = null;
function listen() {
  if (stream || document.hidden || OVER.includes(state)) return;
  stream = new EventSource(`/api/v1/jobs/${job}/events?after=${last}&risk=${encodeURIComponent(known.risk)}&loss=${encodeURIComponent(known.loss)}`);
  stream.addEventListener("state", (event) => { try { progress(JSON.parse(event.data)); } catch { /* of a newer studio */ } });
  stream.addEventListener("points", (event) => {
    const bytes = Uint8Array.from(atob(event.data), (letter) => letter.charCodeAt(0));
    fresh(unpack(bytes.buffer));
    last = Math.max(last, Number(event.lastEventId) || 0);
  });
  stream.addEventListener("end", () => finish());
  stream.onerror = async () => {
    if (stream?.readyState !== EventSource.CLOSED) return; // it tries again by itself
    quiet();
    try { const answer = await fetch("/api/v1/me", { headers: { Accept: "application/json" } }); if (answer.status === 401) { ended(); return; } } catch { /* the server may come back */ }
    timer ??= setInterval(poll, 2000);
  };
}
function quiet() { stream?.close(); stream = null; }
async function poll() {
  if (document.hidden) return;
  try {
    const answer = await ask(`/api/v1/jobs/${job}`);
    if (!answer.ok) return;
    const now = await answer.json();
    progress(now); await points();
    if (OVER.includes(now.state)) finish();
  } catch (error) { if (error.message === "session") clearInterval(timer); }
}
let finished = false;
async function finish() {
  quiet(); clearInterval(timer);
  if (finished) return;
  finished = true;
  await points().catch(() => {});
  location.reload(); // with the recommendations, the reasons and the steps that are open now
}
document.addEventListener("visibilitychange", () => { if (document.hidden) quiet(); else if (!finished) listen(); });
addEventListener("pagehide", quiet);

function told(what, value, px, py) {
  if (what === "hover") {
    tip.hidden = value < 0;
    if (value < 0) return;
    tip.textContent = `No. ${numbers.format(plane.ids[value])}: ${plane.axes[0]} ${digits.format(plane.x[value])}, ${plane.axes[1]} ${digits.format(plane.y[value])}`;
    const right = px > plane.width / 2;
    tip.style.left = right ? "" : `${px + 14}px`; tip.style.right = right ? `${plane.width - px + 14}px` : "";
    tip.style.top = `${Math.max(0, py - 38)}px`;
  }
  if (what === "choose") {
    details(value);
    const place = plane.frontier.indexOf(plane.chosen);
    if (place >= 0) say(`Candidate ${value}, ${place + 1} of ${plane.frontier.length} on the frontier.`);
  }
  if (what === "open") { const first = aside.querySelector("input, button, a"); if (first) first.focus(); }
  if (what === "pin" && plane.chosen >= 0) pin(plane.ids[plane.chosen]);
  if (what === "compare") location.assign(`${home}/compare?study=${known.study}`);
  if (what === "brush") {
    const place = document.querySelector("[data-brush]");
    place.hidden = !value;
    document.querySelector("[data-out]").hidden = !plane.zoom;
    if (value) document.querySelector("[data-brushed]").textContent = `In the box: ${numbers.format(value.count)}, ${numbers.format(value.frontier)} of them on the frontier.`;
  }
}

let wanted = 0;
async function details(id) {
  wanted = id;
  history.replaceState(null, "", `${location.pathname}?${axes}&candidate=${id}`);
  const answer = await ask(`${home}/search/candidate?${axes}&candidate=${id}`, { headers: { Accept: "text/html" } }).catch(() => null);
  if (answer?.ok && wanted === id) aside.innerHTML = await answer.text();
}

async function pin(id, note = "") {
  const on = !pinned.has(id);
  const body = new URLSearchParams({ csrf, study: known.study, candidate: id, pin: on ? "1" : "0", note });
  const answer = await ask(`${home}/pin`, { method: "POST", body, headers: { "X-Live": "1", "X-CSRF-Token": csrf } }).catch(() => null);
  if (answer?.status !== 204) return say("The pin could not be kept. Try again.");
  if (on) pinned.add(id); else pinned.delete(id);
  plane.drawOver(); details(id); stale = true; renew();
  const next = document.querySelector(".forward [data-next]");
  if (next) next.textContent = `Compare${pinned.size ? ` ${pinned.size} pinned` : ""} →`;
  say(on ? `Candidate ${id} is pinned.` : `The pin of candidate ${id} is out.`);
}

aside.addEventListener("submit", (event) => {
  if (!event.submitter?.name) return;
  event.preventDefault();
  const form = new FormData(event.target);
  pin(Number(form.get("candidate")), form.get("note") ?? "");
});
table.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-candidate]");
  if (!link || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const id = Number(link.dataset.candidate);
  plane.chooseId(id); details(id);
});
document.querySelector("[data-zoom]").addEventListener("click", () => plane.zoomIn());
document.querySelector("[data-out]").addEventListener("click", () => { plane.zoomOut(); });
document.querySelector("[data-plane-png]").addEventListener("click", () => {
  const whole = document.createElement("canvas"), from = host.querySelector(".cloud");
  whole.width = from.width; whole.height = from.height;
  const pen = whole.getContext("2d");
  pen.drawImage(from, 0, 0); pen.drawImage(host.querySelector(".over"), 0, 0);
  const link = document.createElement("a");
  link.href = whole.toDataURL("image/png"); link.download = "search.png"; link.click();
});

points().then(() => { if (known.chosen) plane.chooseId(known.chosen); document.body.dataset.loaded = "1"; if (!OVER.includes(state)) listen(); }).catch(() => {});
