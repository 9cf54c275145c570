// The tools, in the order in which clients list them. A new one is a file and a line here.

import type { Tool } from '../tool.ts';
import {
  deleteTool,
  planDeletionTool,
  planRebalanceTool,
  planResizeTool,
  planScaleTool,
  rebalanceTool,
  resizeTool,
  scaleTool,
} from './change.ts';
import { drainTool, planDrainTool, planRestoreTool, restoreTool } from './drain.ts';
import { planRollTool, rollTool } from './roll.ts';
import { logsTool } from './logs.ts';
import { capacityTool, explainTool, listTool, queueTool, showTool } from './look.ts';
import { planJobTool, planTool, runJobTool, runTool } from './work.ts';

export const tools: readonly Tool[] = [
  listTool,
  showTool,
  explainTool,
  queueTool,
  capacityTool,
  logsTool,
  planTool,
  planJobTool,
  runTool,
  runJobTool,
  planDrainTool,
  drainTool,
  planRestoreTool,
  restoreTool,
  planRollTool,
  rollTool,
  planRebalanceTool,
  rebalanceTool,
  planResizeTool,
  resizeTool,
  planScaleTool,
  scaleTool,
  planDeletionTool,
  deleteTool,
];
