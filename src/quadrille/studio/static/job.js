// A page that waits for work: says how far it is, and shows the result when it is there.
import { say } from "./base.js";

const OVER = ["done", "failed", "cancelled"];

export async function ask(address, options = {}) {
  const answer = await fetch(address, { headers: { Accept: "application/json" }, ...options });
  if (answer.status === 401) { ended(); throw new Error("session"); }
  return answer;
}

// The session has ended: what is under way goes on, and after signing in the same page is there again.
export function ended() {
  if (document.getElementById("ended")) return;
  const note = document.createElement("div");
  note.id = "ended"; note.className = "note warn"; note.setAttribute("role", "alert");
  const text = document.createElement("p"), link = document.createElement("a");
  text.textContent = "Your session has ended. Work that is under way goes on. ";
  link.href = location.href; link.textContent = "Sign in and come back to this page";
  text.append(link); note.append(text);
  document.getElementById("main").prepend(note);
  link.focus();
}

const pause = (milliseconds) => new Promise((go) => setTimeout(go, milliseconds));

export async function wait(job, told = () => {}) {
  for (let round = 0; ; round++) {
    await pause(Math.min(250 + 150 * round, 2000));
    let now;
    try {
      const answer = await ask(`/api/v1/jobs/${job}`);
      if (!answer.ok) continue;
      now = await answer.json();
    } catch (error) { if (error.message === "session") return null; continue; } // the server may come back
    told(now);
    if (OVER.includes(now.state)) return now;
  }
}

// What somebody has typed is not taken away by a result: the page is then loaded when they say so.
let typed = false;
document.addEventListener("input", () => { typed = true; });
function renew(place) {
  say("Done.");
  if (!typed) {
    try { sessionStorage.setItem("focus", `${location.pathname} ${document.activeElement?.id ?? ""}`); } catch { /* focus begins anew */ }
    location.reload();
    return;
  }
  const text = document.createElement("p"), link = document.createElement("a");
  text.textContent = "The result is here. "; link.href = location.href; link.textContent = "Save what you have typed, or show the result now.";
  text.append(link); place.replaceChildren(text);
}

for (const place of document.querySelectorAll("[data-job]")) {
  if (OVER.includes(place.dataset.state) || place.dataset.job === "live") continue;
  const words = place.querySelector("[data-words]"), bar = place.querySelector("progress");
  wait(place.dataset.job, (now) => {
    if (words && now.message) words.textContent = now.message;
    if (bar && now.total) { bar.max = now.total; bar.value = now.done; }
  }).then((end) => { if (end) renew(place); });
}
