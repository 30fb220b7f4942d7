import { ToolError } from '@anthropic-ai/sdk/lib/tools/ToolError';
import forSdk from './handlers.js';

export const StrongroomMemory = forSdk(ToolError);
