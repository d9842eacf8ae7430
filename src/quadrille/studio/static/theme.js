// Before anything is drawn: the colours that were chosen on an earlier page.
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* a browser that keeps nothing follows its own settings */ }
