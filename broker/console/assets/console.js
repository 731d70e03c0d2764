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

  // Relative times: "3m ago", "in 20s". The server renders the same texts; the script updates them.
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
      if (!navigator.clipboard) {
        // Browsers have no clipboard for pages without TLS: select the text, so that the user can copy it.
        const text = button.parentElement.querySelector("pre, code");
        if (text) window.getSelection().selectAllChildren(text);
        return;
      }
      navigator.clipboard.writeText(button.dataset.copy).then(function () {
        button.dataset.copied = "true";
        window.setTimeout(function () { delete button.dataset.copied; }, 1200);
      });
      return;
    }
    const row = event.target.closest("tr[data-href]");
    if (row && !event.target.closest("a, button, summary, input") && String(window.getSelection()) === "") window.location.href = row.dataset.href;
  });

  // Refreshes carry a header, by which the server recognizes them. Empty fields of filters are removed, so that URLs stay short.
  document.addEventListener("htmx:configRequest", function (event) {
    if (isRefresh(event)) event.detail.headers["X-Console-Live"] = "1";
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

  // 401 means that the session has ended: reloading the page leads to the login. 404 in response to a refresh means that the object of the
  // page has been deleted: reloading the page says so, and ends the refreshes.
  document.addEventListener("htmx:responseError", function (event) {
    const status = event.detail.xhr.status;
    if (status === 401 || status === 404 && isRefresh(event)) window.location.reload();
    if (status === 429 || status >= 500) refreshLater(event);
  });
  document.addEventListener("htmx:sendError", refreshLater);

  // A refresh waits while the user presses a button or a link, selects text or has opened a dialog: replaced elements would lose the click or the
  // selection. The page refreshes once when the user has finished.
  const waiting = new Set();
  let pressed = false;

  function busy() {
    if (pressed || document.querySelector("dialog[open]")) return true;
    const selection = window.getSelection();
    return selection !== null && !selection.isCollapsed && document.querySelector("[data-live]")?.contains(selection.anchorNode) === true;
  }

  // isRefresh reports whether an htmx event belongs to an automatic refresh.
  function isRefresh(event) {
    const sender = (event.detail.requestConfig || event.detail).elt;
    return sender instanceof Element && sender.matches("[data-live]");
  }

  function refreshWaiting() {
    root.toggleAttribute("data-held", busy());
    if (busy()) return;
    for (const each of Array.from(waiting)) {
      waiting.delete(each);
      if (each.isConnected) htmx.trigger(each, "sse:change");
    }
  }

  // refreshLater repeats a failed refresh after three seconds. Without that, the page would keep its state until the next change.
  function refreshLater(event) {
    if (!isRefresh(event)) return;
    window.setTimeout(function () {
      waiting.add(event.detail.requestConfig.elt);
      refreshWaiting();
    }, 3000);
  }

  document.addEventListener("htmx:beforeRequest", function (event) {
    if (!isRefresh(event) || !busy()) return;
    event.preventDefault();
    waiting.add(event.detail.requestConfig.elt);
  });
  document.addEventListener("pointerdown", function (event) { pressed = event.button === 0; }, true);
  for (const name of ["pointerup", "pointercancel", "contextmenu", "dragend", "blur"]) {
    window.addEventListener(name, function (event) {
      if (name === "blur" && event.target !== window) return;
      // The click comes after the release of the button.
      window.setTimeout(function () { pressed = false; refreshWaiting(); });
    }, true);
  }
  document.addEventListener("selectionchange", refreshWaiting);
  document.addEventListener("close", refreshWaiting, true);

  // A refresh keeps the focus, and the sections that the user has opened.
  let kept = null;

  // likeness returns a selector for the element in the next version of the page, or null.
  function likeness(element) {
    if (element.id) return "#" + CSS.escape(element.id);
    for (const name of ["href", "data-copy"]) {
      if (element.hasAttribute(name)) return element.localName + "[" + name + "=" + CSS.escape(element.getAttribute(name)) + "]";
    }
    return element.localName === "summary" && element.parentElement.id ? "#" + CSS.escape(element.parentElement.id) + " > summary" : null;
  }

  document.addEventListener("htmx:beforeSwap", function (event) {
    if (!isRefresh(event)) return;
    if (busy()) {
      event.detail.shouldSwap = false;
      waiting.add(event.detail.requestConfig.elt);
      return;
    }
    const live = event.detail.requestConfig.elt, focused = document.activeElement;
    kept = { open: Array.from(live.querySelectorAll("details[open][id]"), function (each) { return each.id; }), focused: null };
    if (live.contains(focused)) {
      const text = focused.matches("input[type=text], input[type=search], textarea");
      kept.focused = { element: focused, like: likeness(focused), range: text ? [focused.selectionStart, focused.selectionEnd] : null };
    }
  });

  function restore() {
    if (kept === null) return;
    for (const id of kept.open) {
      const section = document.getElementById(id);
      if (section) section.open = true;
    }
    const focused = kept.focused;
    if (focused === null || document.activeElement !== document.body) return;
    const next = focused.element.isConnected ? focused.element : focused.like && document.querySelector("[data-live] " + focused.like);
    if (!next) return;
    next.focus({ preventScroll: true });
    if (focused.range) next.setSelectionRange(focused.range[0], focused.range[1]);
  }

  document.addEventListener("htmx:afterSwap", function () {
    refreshTimes();
    restore();
  });

  // htmx sets the attributes of replaced elements again when it settles, so a section may close.
  document.addEventListener("htmx:afterSettle", function () {
    restore();
    kept = null;
  });

  document.addEventListener("DOMContentLoaded", function () {
    root.dataset.script = "on";
    refreshTimes();
    window.setInterval(refreshTimes, 1000);
  });
})();
