"""Computes optimal schedules of generated demands by mixed-integer programming (HiGHS), for studies/solstice/optimum.csv.

    pip install highspy
    python3 benches/optimum/optimum.py target/release/plimsoll studies/solstice/optimum.csv 8 10 12 16

For each number m of configurations, with flow f of the demand, configuration k, x whether f has a circuit in k, s the
bytes that it gets there and t the day of k:

    minimise T = sum of t + m * night
    s[f,k] <= rate * t[k],   s[f,k] <= bytes[f] * x[f,k],   at most one x of each port in each k
    bytes of a port less its s <= packet rate * T

The optimum is the least over m; an m whose nights alone make T larger than what was found is not solved. `bound_ms` is
the solver's proven lower bound: it equals `optimum_ms` where the search ended before the time limit.
"""

import subprocess
import sys
import time

import highspy

CIRCUIT, PACKET, NIGHT = 12.5e9 / 1e6, 1.25e9 / 1e6, 20.0  # bytes a us, us
SEEDS = (1, 2, 3)
LIMIT_S = 240.0


def demand(program, ports, seed):
    command = [program, "circuits", "demand", "--ports", str(ports), "--seed", str(seed)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = [[int(value) for value in line.split(",")] for line in text.splitlines()]
    return [(i, j, value) for i, row in enumerate(rows) for j, value in enumerate(row) if value]


def solve(flows, ports, count, best):
    """Returns the least T with `count` configurations and a lower bound, both in us."""
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("threads", 1)
    model.setOptionValue("time_limit", LIMIT_S)
    model.setOptionValue("mip_rel_gap", 1e-5)
    longest = best - count * NIGHT
    days = [model.addVariable(0, longest) for _ in range(count)]
    # Bytes are counted in us of a circuit.
    x = [[model.addBinary() for _ in range(count)] for _ in flows]
    s = [[model.addVariable(0, value / CIRCUIT) for _ in range(count)] for _, _, value in flows]
    for f, (_, _, value) in enumerate(flows):
        for k in range(count):
            model.addConstr(s[f][k] <= days[k])
            model.addConstr(s[f][k] <= min(value / CIRCUIT, longest) * x[f][k])
        model.addConstr(sum(s[f]) <= value / CIRCUIT)
    total = sum(days) + count * NIGHT
    for side in (0, 1):
        for port in range(ports):
            own = [f for f, flow in enumerate(flows) if flow[side] == port]
            for k in range(count):
                model.addConstr(sum(x[f][k] for f in own) <= 1)
            bytes_us = sum(flows[f][2] for f in own) / CIRCUIT
            carried = sum(s[f][k] for f in own for k in range(count))
            model.addConstr(bytes_us - carried <= PACKET / CIRCUIT * total)
    for k in range(1, count):
        model.addConstr(days[k] <= days[k - 1])
    model.minimize(total)
    info = model.getInfo()
    status = model.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return None, best
    found = info.objective_function_value if info.primal_solution_status == 2 else None
    return found, info.mip_dual_bound


def main():
    program, file, sizes = sys.argv[1], sys.argv[2], [int(size) for size in sys.argv[3:]]
    # HiGHS prints its name to stdout.
    out = open(file, "w", encoding="utf-8")
    print("ports,seed,configurations,optimum_ms,bound_ms,seconds", file=out, flush=True)
    for ports in sizes:
        for seed in SEEDS:
            flows = demand(program, ports, seed)
            heaviest = max(sum(v for *ij, v in flows if ij[side] == port) for side in (0, 1) for port in range(ports))
            begin = time.time()
            best, at, bound = 2 * heaviest / CIRCUIT, 0, float("inf")
            for count in range(1, 4 * ports):
                least = (heaviest / CIRCUIT + count * NIGHT) / (1 + PACKET / CIRCUIT)
                if least >= best:
                    break
                found, dual = solve(flows, ports, count, best)
                bound = min(bound, max(dual, least))
                print(f"{ports} {seed} {count}: {found} {dual}", file=sys.stderr, flush=True)
                if found is not None and found < best:
                    best, at = found, count
            bound = min(bound, best)
            seconds = time.time() - begin
            print(f"{ports},{seed},{at},{best / 1e3:.6f},{bound / 1e3:.6f},{seconds:.0f}", file=out, flush=True)


main()
