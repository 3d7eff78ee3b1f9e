/* A button that copies a block of code: without prompts, and without what is printed. */
addEventListener("DOMContentLoaded", () => {
  if (!navigator.clipboard) return;
  for (const block of document.querySelectorAll(":not(.highlight-text) > div.highlight")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      const code = block.querySelector("pre").cloneNode(true);
      code.querySelectorAll(".gp, .go, .linenos").forEach((part) => part.remove());
      let answer = "Copied";
      try {
        await navigator.clipboard.writeText(code.textContent.trim() + "\n");
      } catch {
        answer = "Not allowed";
      }
      button.textContent = answer;
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    block.append(button);
  }
});
