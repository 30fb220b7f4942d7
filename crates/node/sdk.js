// Finds a file of the application's SDK where this package is linked (`npm install ./crates/node`). Node.js
// would look beside the package's own folder, where there is no SDK, or another one, whose errors
// the application's tool runner does not know.
'use strict';
const { createRequire } = require('node:module');
const path = require('node:path');

module.exports = (name) => {
  if (__dirname.split(path.sep).includes('node_modules')) return undefined;
  const script = process.argv[1] && path.dirname(path.resolve(process.argv[1]));
  for (const from of [script, process.cwd()]) {
    if (!from) continue;
    try {
      return createRequire(path.join(from, 'index.js')).resolve(`@anthropic-ai/sdk/${name}`);
    } catch {
      // Not there; perhaps at the next place.
    }
  }
  return undefined;
};
