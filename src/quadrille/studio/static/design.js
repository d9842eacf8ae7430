// The forecast follows the form: half a second after the last change it is kept and looked at again.
import { ask, wait } from "./job.js";

const form = document.getElementById("design"), aside = document.getElementById("ahead");
document.querySelectorAll("[data-noscript]").forEach((button) => { button.hidden = true; });

const only = () => document.querySelectorAll("select[name$='.mode']").forEach((mode) => {
  const group = mode.closest("fieldset");
  group.querySelector(".checks").hidden = mode.value !== "together";
  group.querySelector("textarea").hidden = mode.value !== "lines";
});
only();

// What is wrong stands beside its field, also when it is found while somebody types elsewhere.
function mark() {
  form.querySelectorAll(".error[data-found]").forEach((old) => { old.previousElementSibling?.removeAttribute("aria-invalid"); old.remove(); });
  for (const fault of aside.querySelectorAll("[data-fault]")) {
    const field = form.elements.namedItem(fault.dataset.fault), place = field instanceof RadioNodeList ? field[0]?.closest(".checks") : field;
    if (!place || place.parentElement.querySelector(".error")) continue;
    const said = document.createElement("span");
    said.className = "error"; said.dataset.found = ""; said.id = `found-${fault.dataset.fault.replace(".", "-")}`;
    said.textContent = fault.dataset.text;
    place.setAttribute("aria-invalid", "true");
    place.setAttribute("aria-describedby", `${said.id} ${place.getAttribute("aria-describedby") ?? ""}`.trim());
    place.after(said);
  }
}

let timer, round = 0;
async function follow(mine) {
  const place = aside.querySelector("[data-task]");
  if (place) { const end = await wait(place.dataset.task); if (!end || mine !== round) return; }
  const answer = await ask(form.dataset.ahead, { headers: { Accept: "text/html" } });
  if (answer.ok && mine === round) {
    aside.innerHTML = await answer.text();
    mark();
    if (aside.querySelector("[data-task]")) await follow(mine);
  }
}

// One save at a time: the next one is made from the version that this one gives back.
let saving = null;
async function save() {
  const body = new URLSearchParams(new FormData(form));
  body.set("action", "save");
  const answer = await ask(location.pathname, { method: "POST", body, headers: { "X-Live": "1", Accept: "text/plain", "X-CSRF-Token": form.elements.csrf.value } });
  const kept = answer.ok && answer.headers.get("content-type").startsWith("text/plain");
  if (kept) form.elements.version.value = await answer.text();
  return { answer, kept };
}

async function keep() {
  const mine = ++round;
  while (saving) await saving.catch(() => {});
  if (mine !== round) return;
  saving = save().finally(() => { saving = null; });
  const { answer, kept } = await saving;
  if (kept) {
    await follow(mine);
  } else if (mine === round) { // what is wrong stands beside the form; the page itself is left alone while somebody types
    const said = new DOMParser().parseFromString(await answer.text(), "text/html");
    const part = said.getElementById("ahead") ?? said.querySelector("main");
    if (part) aside.replaceChildren(...part.childNodes);
    mark();
  }
}

const later = () => { clearTimeout(timer); timer = setTimeout(() => keep().catch(() => {}), 500); };
// Whoever types the name of a method is let finish, and finds the same field again.
function method(field) {
  clearTimeout(timer);
  timer = setTimeout(() => {
    try { sessionStorage.setItem("focus", `${location.pathname} ${field.id}`); } catch { /* focus begins anew */ }
    form.querySelector('button[value="method"]').click();
  }, 700);
}

form.addEventListener("change", (event) => {
  if (event.target.matches("[data-method]")) { method(event.target); return; }
  only(); later();
});
form.addEventListener("submit", (event) => {
  clearTimeout(timer); round++;
  if (!saving) return;
  const by = event.submitter;
  event.preventDefault();
  saving.catch(() => {}).then(() => form.requestSubmit(by));
});
if (aside.querySelector("[data-task]")) follow(round).catch(() => {});
