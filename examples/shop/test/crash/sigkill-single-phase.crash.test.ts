import { runKillPoints } from './run-kill-points.js';

runKillPoints('single-phase', 'SIGKILL');
