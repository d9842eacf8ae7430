// On every page: the switch of colours, the list of keys, copying, forms that ask twice, and rows that are filled in.
const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");

export const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);

export function say(text) {
  const place = document.getElementById("said");
  if (place) place.textContent = text;
}

function switchTheme() {
  const next = isDark() ? "light" : "dark";
  root.dataset.theme = next;
  try { localStorage.setItem("theme", next); } catch { /* for this page only */ }
  dispatchEvent(new Event("theme"));
  say(`${next} colours`);
}

dark.addEventListener("change", () => dispatchEvent(new Event("theme")));
document.getElementById("theme")?.addEventListener("click", switchTheme);

const help = document.getElementById("help");
document.getElementById("keys")?.addEventListener("click", () => help.showModal());

async function copy(button) {
  const text = document.getElementById(button.dataset.copy).textContent;
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
    button.textContent = "Selected: press Ctrl+C";
  }
  setTimeout(() => { button.textContent = before; }, 2000);
}

function download(button) {
  const text = document.getElementById(button.dataset.download).textContent;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = button.dataset.name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button, a[data-ask]");
  if (!button) return;
  if (button.dataset.copy) copy(button);
  if (button.dataset.download) download(button);
  if (button.dataset.ask && !confirm(button.dataset.ask)) event.preventDefault();
});

// A change in a form that says so is sent at once; a button does the same without script.
document.addEventListener("change", (event) => {
  if (event.target.form?.dataset.live === "change") event.target.form.requestSubmit();
});

// A table that is wider than its place can be scrolled by keyboard, too.
function reach() {
  for (const place of document.querySelectorAll(".scroll")) {
    const wide = place.scrollWidth > place.clientWidth + 1;
    if (wide) { place.tabIndex = 0; place.setAttribute("role", "region"); place.setAttribute("aria-label", place.querySelector("caption")?.textContent || "Table"); }
    else { place.removeAttribute("tabindex"); place.removeAttribute("role"); place.removeAttribute("aria-label"); }
  }
}
reach();
addEventListener("resize", reach);

// On a phone the steps are one line: the current one is in sight.
const here = document.querySelector(".steps [aria-current]"), steps = here?.closest(".steps");
if (steps && steps.scrollWidth > steps.clientWidth) steps.scrollLeft = here.offsetLeft - (steps.clientWidth - here.offsetWidth) / 2;

// A page that was loaded again for a result goes on where it was.
try {
  const [path, id] = (sessionStorage.getItem("focus") ?? "").split(" ");
  sessionStorage.removeItem("focus");
  if (id && path === location.pathname) document.getElementById(id)?.focus({ preventScroll: true });
} catch { /* a browser that keeps nothing */ }

// What the worker writes when it starts is waited for, unless somebody is busy with the page by then.
async function started() {
  for (;;) {
    await new Promise((go) => setTimeout(go, 700));
    try {
      const answer = await fetch("/api/v1/catalogue", { headers: { Accept: "application/json" } });
      if (answer.status === 401) return;
      if (answer.ok) break;
    } catch { /* the server may come back */ }
  }
  if (!document.querySelector(".drop progress:not([hidden])")) location.reload();
}
if (document.querySelector("[data-starting]")) started();

const typing = (target) => target.matches?.("input, select, textarea, [contenteditable]");
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (event.key === "?") { event.preventDefault(); help?.showModal(); }
  if (event.key === "t") switchTheme();
  if (event.key === "d") { const drawer = document.querySelector(".drawer"); if (drawer) drawer.open = !drawer.open; }
  if (/^[1-8]$/.test(event.key)) document.querySelector(`.steps [data-step="${event.key}"]`)?.click();
  if (event.key === "n") document.querySelector("[data-next]")?.click();
});
