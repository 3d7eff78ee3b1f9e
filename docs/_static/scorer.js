/* Order of search results: guides whose title has the word, then names of the package, then other guides, then the rest. */
var Scorer = {
  score: ([page, , anchor, , score, , kind]) => {
    // A method has the name that is looked for, but no page.
    if (kind === "object" && !page.endsWith("/" + anchor.slice(1))) return score - 20;
    // Terms of the glossary: 100 where the whole term is looked for.
    if (kind === "index") return score / 4;
    const bonus = { start: 24, choose: 14, tutorial: 12, "how-to": 12, explanation: 6, developers: -4 };
    return score + (page.startsWith("explanation/evidence") ? -4 : bonus[page.split("/")[0]] || 0);
  },
  objNameMatch: 30,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
