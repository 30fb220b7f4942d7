'use strict';
const { ToolError } = require('@anthropic-ai/sdk/lib/tools/ToolError');
module.exports = { StrongroomMemory: require('./handlers.js')(ToolError) };
