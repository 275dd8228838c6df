// Lint of the explorer's page: browser modules without a build step.
const js = require("@eslint/js");
const globals = require("globals");

module.exports = [
  { ignores: ["**/*", "!src/", "!src/cbabo/", "!src/cbabo/surfaces/", "!src/cbabo/surfaces/page/", "!src/cbabo/surfaces/page/*.js"] },
  {
    files: ["src/cbabo/surfaces/page/*.js"],
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
