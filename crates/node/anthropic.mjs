import { pathToFileURL } from 'node:url';
import forSdk from './handlers.js';
import sdkFile from './sdk.js';

const file = sdkFile('lib/tools/ToolError')?.replace(/\.js$/, '.mjs');
const { ToolError } = file
  ? await import(pathToFileURL(file).href)
  : await import('@anthropic-ai/sdk/lib/tools/ToolError');

export const StrongroomMemory = forSdk(ToolError);
