import { onParentGone } from '../../src/service/parent.js';

onParentGone(() => {
  console.log('gone');
  process.exit(0);
});
console.log('watching');
setInterval(() => undefined, 1_000);
