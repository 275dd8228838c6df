// Lint of the explorer's page and of its widget: browser modules without a build step.
const js = require("@eslint/js");
const globals = require("globals");

module.exports = [
  { ignores: ["**/*", "!src/", "!src/cbabo/", "!src/cbabo/surfaces/", "!src/cbabo/surfaces/page/", "!src/cbabo/surfaces/page/*.js", "!src/cbabo/surfaces/notebook/", "!src/cbabo/surfaces/notebook/*.js"] },
  {
    files: ["src/cbabo/surfaces/page/*.js", "src/cbabo/surfaces/notebook/*.js"],
    languageOptions: { ecmaVersion: 2022, sourceType: "module", globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      ...js.configs.recommended.rules,
      eqeqeq: "error",
      "no-var": "error",
      "prefer-const": "error",
    },
  },
];
