import { runKillPoints } from './run-kill-points.js';

runKillPoints('two-phase', 'SIGTERM');
