import { describe, expect, it } from 'vitest';
import { BUDGET_OPTIONS, crashBudget, planBudget } from '../../src/lifecycle/budget.js';
import { createLifecycle } from '../../src/lifecycle/index.js';
import { parseOptions } from '../../src/options.js';

const options = (given: object = {}) => parseOptions('test', BUDGET_OPTIONS, given);

describe('the budget', () => {
  it('R-SHUT-2 R-SHUT-OBS-1 fits 60 s with a pre-stop of 10 s by default', () => {
    const budget = planBudget(options({ preStopMs: 10_000 }));
    expect(budget.endsMs).toEqual({
      http: 27_000,
      work: 20_000,
      consumers: 15_000,
      producers: 37_000,
      pools: 48_000,
      management: 48_000,
    });
    expect(10_000 + budget.forcedExitMs).toBeLessThan(60_000);
  });

  it('R-SHUT-2 R-SHUT-OBS-1 is refused with the arithmetic where it does not fit', () => {
    const refused = (): unknown => createLifecycle({ graceMs: 40_000, preStopMs: 10_000 });
    expect(refused).toThrow(expect.objectContaining({ code: 'RS_LIFECYCLE_BUDGET' }));
    expect(refused).toThrow(
      'preStopMs 10000 + 27000 (the longest of lame duck 2000 + HTTP 25000 = 27000, work 20000 and consumers 15000, ' +
        'which run side by side: 27000) + producersMs 10000 + poolReserveMs 2000 + exitMarginMs 2000 = 51000 ms, ' +
        '11000 ms more than graceMs 40000',
    );
  });

  it('takes a budget that fits to the millisecond', () => {
    expect(() => planBudget(options({ graceMs: 51_000, preStopMs: 10_000 }))).not.toThrow();
    expect(() => planBudget(options({ graceMs: 50_999, preStopMs: 10_000 }))).toThrow('1 ms more than graceMs');
  });

  it('keeps the reserve of the pools whatever the phases before take', () => {
    const budget = planBudget(options({ graceMs: 51_000, preStopMs: 10_000 }));
    expect(budget.totalMs - budget.endsMs.producers).toBe(2_000);
  });

  it('keeps it also in the short budget after a crash, without a lame duck', () => {
    const given = options({});
    const budget = crashBudget(planBudget(given), given);
    expect(budget.lameDuckMs).toBe(0);
    expect(budget.totalMs).toBe(10_000);
    expect(budget.endsMs.producers).toBeLessThanOrEqual(8_000);
    expect(budget.endsMs.http).toBeGreaterThan(5_000);
  });

  it.each([{ graceMs: -1 }, { httpDrainMs: '25s' }, { lameDuckMs: 0.5 }, { workMs: Number.POSITIVE_INFINITY }])(
    'refuses %o',
    (given) => {
      expect(() => createLifecycle(given as object)).toThrow(expect.objectContaining({ code: 'RS_OPTION_INVALID' }));
    },
  );

  it('refuses an unknown name and suggests the nearest', () => {
    expect(() => createLifecycle({ httpDrainMS: 1 } as object)).toThrow('did you mean "httpDrainMs"?');
  });
});
