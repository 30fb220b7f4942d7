// Builds the native half and puts it beside this file. Needs Rust.
// STRONGROOM_PROFILE=dev builds without optimisation.
'use strict';
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const profile = process.env.STRONGROOM_PROFILE || 'release';
const args = ['build', '--locked', '--profile', profile, '--message-format', 'json-render-diagnostics'];
const built = spawnSync('cargo', args, {
  cwd: __dirname,
  stdio: ['ignore', 'pipe', 'inherit'],
  maxBuffer: 1 << 28,
});
if (built.error) {
  console.error(`strongroom: cannot start cargo (${built.error.code}): install Rust, see https://rustup.rs`);
  process.exit(1);
}
if (built.status !== 0) process.exit(built.status ?? 1);
const library = built.stdout
  .toString()
  .split('\n')
  .filter((line) => line.startsWith('{'))
  .map((line) => JSON.parse(line))
  .filter((message) => message.reason === 'compiler-artifact' && message.target.name === 'strongroom_node')
  .flatMap((message) => message.filenames)
  .find((name) => /\.(so|dylib)$/.test(name));
if (!library) {
  console.error('strongroom: cargo built no library');
  process.exit(1);
}
// Renamed into place: a process that has the old one loaded keeps it.
const target = path.join(__dirname, 'strongroom.node');
fs.copyFileSync(library, `${target}.new`);
fs.renameSync(`${target}.new`, target);
