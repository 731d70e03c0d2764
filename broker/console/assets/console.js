// The script of the console. All pages work without it: it adds the theme switch, the keyboard, copying, and relative times.
(function () {
  "use strict";

  const root = document.documentElement;

  // Theme: automatic, light or dark. The server reads the cookie, so pages do not flash.
  function setTheme(theme) {
    const year = 31536000;
    document.cookie = "console-theme=" + theme + "; path=/console; max-age=" + (theme === "auto" ? 0 : year) + "; samesite=lax";
    if (theme === "auto") {
      delete root.dataset.theme;
    } else {
      root.dataset.theme = theme;
    }
    const button = document.getElementById("theme");
    if (button) {
      button.setAttribute("aria-label", "Theme: " + theme + ". Switch.");
      button.title = "Theme: " + theme;
    }
  }

  function nextTheme() {
    const order = ["auto", "light", "dark"];
    setTheme(order[(order.indexOf(root.dataset.theme || "auto") + 1) % order.length]);
  }

  // Relative times: "3m ago", "in 20s". The text of the server is in UTC.
  function span(seconds) {
    const value = Math.abs(seconds);
    if (value < 60) return Math.round(value) + "s";
    if (value < 3600) return Math.floor(value / 60) + "m" + (value < 600 ? String(Math.floor(value % 60)).padStart(2, "0") + "s" : "");
    if (value < 86400) return Math.floor(value / 3600) + "h" + String(Math.floor((value % 3600) / 60)).padStart(2, "0") + "m";
    return Math.floor(value / 86400) + "d" + Math.floor((value % 86400) / 3600) + "h";
  }

  function refreshTimes() {
    const now = Date.now();
    for (const each of document.querySelectorAll("time[data-relative]")) {
      const seconds = (Date.parse(each.dateTime) - now) / 1000;
      if (Number.isNaN(seconds)) continue;
      if (each.dataset.relative === "for") {
        each.textContent = span(seconds);
      } else if (seconds > 0) {
        each.textContent = "in " + span(seconds);
      } else {
        each.textContent = each.dataset.relative === "until" ? "now" : span(seconds) + " ago";
      }
    }
  }

  // Rows: j and k or the arrow keys move, Enter opens.
  function rows() {
    return Array.from(document.querySelectorAll("main tr[data-href]"));
  }

  function moveRow(step) {
    const all = rows();
    if (all.length === 0) return false;
    const at = all.indexOf(document.activeElement.closest("tr[data-href]"));
    const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
    const link = next.querySelector("a");
    (link || next).focus();
    next.scrollIntoView({ block: "nearest" });
    return true;
  }

  function editing(target) {
    return target.closest("input, textarea, select, [contenteditable]") !== null;
  }

  function toggleHelp() {
    const dialog = document.getElementById("help");
    if (!dialog) return;
    if (dialog.open) {
      dialog.close();
    } else {
      dialog.showModal();
    }
  }

  const places = { o: "/console/", i: "/console/instances", p: "/console/operations", r: "/console/orchestrations", b: "/console/bundles", c: "/console/catalog", s: "/console/systems", a: "/console/audit" };
  let going = false;

  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.target instanceof Element)) return;
    if (editing(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (going) {
      going = false;
      if (places[event.key] && document.querySelector('nav a[href="' + places[event.key] + '"]')) window.location.href = places[event.key];
      return;
    }
    switch (event.key) {
      case "/": {
        const search = document.getElementById("search");
        if (search) {
          event.preventDefault();
          search.focus();
          search.select();
        }
        return;
      }
      case "j":
      case "ArrowDown":
        if (event.key === "j" || event.target.closest("tr[data-href]")) {
          if (moveRow(1)) event.preventDefault();
        }
        return;
      case "k":
      case "ArrowUp":
        if (event.key === "k" || event.target.closest("tr[data-href]")) {
          if (moveRow(-1)) event.preventDefault();
        }
        return;
      case "g":
        going = true;
        window.setTimeout(function () { going = false; }, 1500);
        return;
      case "t":
        nextTheme();
        return;
      case "?":
        toggleHelp();
    }
  });

  document.addEventListener("click", function (event) {
    if (!(event.target instanceof Element)) return;
    const button = event.target.closest("button");
    if (button && button.id === "theme") return nextTheme();
    if (button && button.id === "keys") return toggleHelp();
    if (button && button.dataset.copy !== undefined) {
      navigator.clipboard.writeText(button.dataset.copy).then(function () {
        button.dataset.copied = "true";
        window.setTimeout(function () { delete button.dataset.copied; }, 1200);
      });
      return;
    }
    const row = event.target.closest("tr[data-href]");
    if (row && !event.target.closest("a, button, summary, input") && String(window.getSelection()) === "") window.location.href = row.dataset.href;
  });

  // Filters: drop empty fields, so that URLs stay short.
  document.addEventListener("htmx:configRequest", function (event) {
    if (event.detail.elt.closest("[data-live]")) event.detail.headers["X-Console-Live"] = "1";
    if (!event.detail.elt.closest("form.filters")) return;
    for (const name of Array.from(event.detail.formData.keys())) {
      if (event.detail.formData.get(name) === "") event.detail.formData.delete(name);
    }
  });

  document.addEventListener("submit", function (event) {
    if (!event.target.matches("form.filters")) return;
    for (const field of event.target.elements) {
      if (field.value === "" && field.name) field.disabled = true;
    }
  });

  // A refresh that gets 401 has lost its session: the page leads to the login.
  document.addEventListener("htmx:responseError", function (event) {
    if (event.detail.xhr.status === 401) window.location.reload();
  });

  // A refresh must not move the focus, nor close what the user has opened.
  document.addEventListener("htmx:afterSwap", refreshTimes);
  document.addEventListener("htmx:beforeSwap", function (event) {
    if (event.detail.elt && event.detail.requestConfig && event.detail.requestConfig.headers["X-Console-Live"] && document.querySelector("[data-live] dialog[open]")) {
      event.detail.shouldSwap = false;
    }
  });

  document.addEventListener("DOMContentLoaded", function () {
    root.dataset.script = "on";
    refreshTimes();
    window.setInterval(refreshTimes, 1000);
  });
})();
