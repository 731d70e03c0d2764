// Replaces the content of elements with data-refresh by the current content of the same page, every so many seconds as the attribute says. It
// pauses while the page is hidden, and stops when the attribute is gone or the session has ended.
"use strict";

(() => {
  const limit = 10000; // milliseconds for which a request may take

  async function refresh(element) {
    const response = await fetch(location.href, {
      headers: {"X-Console-Live": "1"}, redirect: "error", signal: AbortSignal.timeout(limit),
    });
    if (response.status === 401) {
      location.reload();
      return;
    }
    if (!response.ok) {
      return;
    }

    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.getElementById(element.id);
    if (!fresh) {
      return;
    }
    if (fresh.innerHTML !== element.innerHTML) {
      element.replaceChildren(...fresh.childNodes);
    }
    if (fresh.dataset.refresh) {
      element.dataset.refresh = fresh.dataset.refresh;
    } else {
      delete element.dataset.refresh;
    }
  }

  function schedule(element) {
    const seconds = Number(element.dataset.refresh);
    if (!seconds) {
      return;
    }
    setTimeout(async () => {
      if (!document.hidden) {
        try {
          await refresh(element);
        } catch {
          // The next attempt may succeed.
        }
      }
      schedule(element);
    }, seconds * 1000);
  }

  document.querySelectorAll("[data-refresh]").forEach(schedule);
})();
