// Replaces the content of the page of the fleet at an interval. Without this script, the page reloads itself.
"use strict";

(() => {
  const content = document.getElementById("content");
  const connection = document.getElementById("connection");
  if (!content || content.dataset.refresh !== "on") return;

  const isBusy = () => {
    const active = document.activeElement;
    if (document.hidden || !document.getSelection().isCollapsed) return true;
    const typed = [...content.querySelectorAll("input[type=search]")].some((field) => field.value !== field.defaultValue);
    return typed || (content.contains(active) && active.matches("input, select"));
  };

  const say = (text) => {
    if (connection.textContent !== text) connection.textContent = text;
  };

  // The place of the keyboard, of open details and of scrolled tables stays.
  const replace = (text) => {
    const active = document.activeElement;
    const link = content.contains(active) ? { id: active.id, href: active.getAttribute("href") } : null;
    const open = [...content.querySelectorAll("details[open]")].map((details) => details.id);
    const scrolled = [...content.querySelectorAll(".wide")].map((wide) => [wide.getAttribute("aria-labelledby"), wide.scrollLeft]);
    content.innerHTML = text;
    for (const details of content.querySelectorAll("details")) details.open = open.includes(details.id);
    for (const [name, left] of scrolled) {
      const wide = content.querySelector(`.wide[aria-labelledby="${name}"]`);
      if (wide) wide.scrollLeft = left;
    }
    if (!link) return;
    const same = link.id
      ? document.getElementById(link.id)
      : [...content.querySelectorAll("a")].find((other) => other.getAttribute("href") === link.href);
    if (same) same.focus({ preventScroll: true });
  };

  const refresh = async () => {
    if (isBusy()) return;
    try {
      const answer = await fetch(`fragment${location.search}`, { credentials: "same-origin" });
      if (answer.status === 401) {
        say("The sign-in has ended. Reload the page to sign in again.");
        return;
      }
      if (!answer.ok) throw new Error(String(answer.status));
      const text = await answer.text();
      if (!isBusy()) replace(text);
      say("");
    } catch {
      say("The dashboard does not answer. The page shows the last data.");
    }
  };

  setInterval(refresh, 1000 * Number(content.dataset.seconds));
})();
