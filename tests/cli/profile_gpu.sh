#!/usr/bin/env bash
# The profile that tools/profile_gpu.py writes from recorded measurements loads, has a source for every number, and holds
# what follows from them. The measurements in profile_gpu.csv are of a made-up GPU: copies reach 1400 GB/s, the best
# products 250 TFLOP/s, weight gradients take 1.1 times as long, a pinned copy reaches 25 GB/s, an all-reduce of S bytes
# among 8 takes 20 us + 2·7/8·S / 200 GB/s.
#
#     tests/cli/profile_gpu.sh DTSIM CHECK-SOURCES
set -euo pipefail
dtsim=$(realpath "$1")
sources=$(realpath "$2")
root=$(realpath "$(dirname "$0")/../..")
if ! command -v python3 >/dev/null; then
    echo "python3 is not here: tools/profile_gpu.py is not tested"
    exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export DTSIM_DATA=$root
failed=0

write() { # NAME OPTION…: the profile from the recorded measurements
    python3 "$root/tools/profile_gpu.py" --from "$root/tests/cli/profile_gpu.csv" --folder "$scratch" --name "$@" 2>/dev/null
}

# expect FILE KEY VALUE: `dtsim run` with the GPU says so
expect() {
    local got
    got=$("$dtsim" show "$root/scenarios/gcp-data-parallel/scaling-ddp.yaml" --effective --width 200 \
        --set cluster.gpu="$scratch/$1" --set cluster.intra.bandwidth="300 GB/s" | awk -v key="cluster.gpu.$2" '$1 == key { print $2, $3 }' | sed 's/ \[.*//')
    if [ "$got" != "$3" ]; then
        echo "$1: $2 is '$got', not '$3'"
        failed=1
    fi
}

write whole --peak bf16=312 --peak fp16=312 --memory-bandwidth 1555
write part --extends a100-40gb --peak bf16=312
for profile in whole.yaml part.yaml whole-cluster.yaml; do
    "$sources" "$scratch/$profile" >/dev/null || { echo "$profile: numbers without a source" && failed=1; }
done
expect whole.yaml gemm.max_efficiency "0.8013" # 250 / 312
expect whole.yaml gemm.weight_gradient_factor "1.1"
expect whole.yaml gemm.floor "3.5 us"
expect whole.yaml memory_kernel.efficiency "0.9003" # 1400 / 1555
expect whole.yaml memory_kernel.floor "3 us"
expect whole.yaml memory "40960 MiB"
expect whole.yaml peak.fp32 "18 TFLOP/s"
expect whole.yaml flash.forward "0.6"
expect whole.yaml flash.backward "0.54"
expect whole.yaml pcie_bandwidth "24.98 GB/s"
expect part.yaml gemm.tile_overhead "60" # of the profile that it extends
expect part.yaml memory_bandwidth "1400 GB/s"
grep -q 'bandwidth: {value: 200 GB/s' "$scratch/whole-cluster.yaml" || { echo "whole-cluster.yaml: not 200 GB/s" && failed=1; }
grep -q 'base_latency: {value: 20 us' "$scratch/whole-cluster.yaml" || { echo "whole-cluster.yaml: not 20 us" && failed=1; }
for profile in whole part; do
    "$dtsim" run "$root/scenarios/gcp-data-parallel/scaling-ddp.yaml" --set cluster.gpu="$scratch/$profile.yaml" \
        --set cluster.intra.bandwidth="300 GB/s" --format json >"$scratch/$profile.json" || { echo "$profile.yaml: cannot be simulated" && failed=1; }
done
# kernels and groups that were measured take as long as they did: those of the shapes of a scenario, and all-reduces
grep -q '^measured: ' "$scratch/whole.yaml" || { echo "whole.yaml: nothing measured" && failed=1; }
"$dtsim" explain "$root/scenarios/gcp-data-parallel/scaling-ddp.yaml" --no-what-if --format json >"$scratch/why.json"
python3 - "$root/tools" "$scratch/why.json" "$scratch" <<'END' || failed=1
import csv, sys
sys.path.insert(0, sys.argv[1])
import profile_gpu
products, attention = profile_gpu.shapes_of(sys.argv[2])
assert ("forward", "fp16", 1, 2048, 1536, 6144) in products and not attention, (products, attention)
assert sorted(p[2] for p in products if p[3:] == (256, 96, 256) and p[0] == "forward") == [1, 4, 128], products
with open(sys.argv[3] + "/shapes.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(profile_gpu.COLUMNS)
    writer.writerows([["gemm", *p, 0.001] for p in products])
    writer.writerow(["collective", "all-reduce", "fp16", 28336128, 16, 2, "", 0.005])
END
"$dtsim" explain "$root/scenarios/gcp-data-parallel/scaling-ddp.yaml" --no-what-if --format json \
    --set cluster.gpu.measured="$scratch/shapes.csv" --set cluster.measured="$scratch/shapes.csv" >"$scratch/measured.json"
python3 - "$scratch/measured.json" <<'END' || failed=1
import json, sys
said = json.load(open(sys.argv[1]))
products = [k for k in said["kernels"] if k["name"] in ("mlp_up", "mlp_down")]
assert len(products) == 6 and all(k["measured"] for k in products), products
# on the slowest of 16 GPUs, some of them beside a reduction
assert all(0.00102 <= k["total_s"] / k["count"] <= 0.0011 for k in products), products
assert all(t["measured"] for t in said["transfers"] if t["kind"] == "all-reduce"), said["transfers"]
assert not any(k["measured"] for k in said["kernels"] if k["name"] == "attention_norm"), said["kernels"]
END
# tables that are none
refused_table() { # MESSAGE, rows on stdin
    local got
    cat >"$scratch/table.csv"
    got=$(python3 "$root/tools/profile_gpu.py" --name table --folder "$scratch" --from "$scratch/table.csv" 2>&1) && got="not refused"
    got=${got//"$scratch/"/}
    [ "$got" = "profile_gpu.py: $1" ] || { echo "refused with: $got, not: $1" && failed=1; }
}
columns=kind,variant,dtype,a,b,c,d,seconds
printf '%s\n' $columns gemm,forward,fp16,1,64,many,64,0.001 | refused_table "table.csv:2: c is 'many', not a number"
printf '%s\n' $columns memory,copy,,1e9,,,,0.001 memory,copy,,1e9,,,,fast | refused_table "table.csv:3: seconds is 'fast', not a number"
printf '%s\n' $columns gemm,forward,fp16,1,64,64,64, | refused_table "table.csv:2: seconds is '', not a number"
printf '%s\n' $columns memory,copy,,nan,,,,0.001 | refused_table "table.csv:2: a is 'nan', not a number"
printf '%s\n' $columns memory,copy,,1e9,,,,0 | refused_table "table.csv:2: seconds is '0', and nothing takes no time"
printf '%s\n' $columns memory,copy,1e9 | refused_table "table.csv:2: 3 columns, not 8"
printf 'kind\n' | refused_table "table.csv does not begin with $columns"
printf '' | refused_table "table.csv does not begin with $columns"
printf '\377\376\n' | refused_table "table.csv is no table: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"
# logs of nccl-tests
cat >"$scratch/log" <<'END'
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: 4(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    100.0   10.49   19.66      0    101.0   10.38   19.47      0
     4194304       1048576     float     sum      -1    200.0   20.97   39.32      0    201.0   20.87   39.13      0
# Avg bus bandwidth    : 29.4
END
python3 "$root/tools/profile_gpu.py" --name logged --folder "$scratch" --nccl-tests "all-reduce:16:2=$scratch/log" 2>/dev/null
diff - "$scratch/logged.csv" <<'END' || failed=1
kind,variant,dtype,a,b,c,d,seconds
collective,all-reduce,float,1048576,16,2,,0.0001
collective,all-reduce,float,4194304,16,2,,0.0002
END
"$dtsim" show "$root/scenarios/gcp-data-parallel/scaling-ddp.yaml" --set cluster.measured="$scratch/logged.csv" >/dev/null || failed=1
grep -q 'measured: {value: logged.csv' "$scratch/logged-cluster.yaml" || { echo "logged-cluster.yaml: no measured" && failed=1; }
# as they were and are: all columns, redop or root or both left out or blank, all-gathers whose algbw leaves out a rank's own part
logged() { # COLLECTIVE:RANKS:NODES, log on stdin: rows, or the message
    cat >"$scratch/log"
    python3 "$root/tools/profile_gpu.py" --name logged --folder "$scratch" --nccl-tests "$1=$scratch/log" 2>"$scratch/message" || {
        sed "s|$scratch/||" "$scratch/message"
        return
    }
    tail -n +2 "$scratch/logged.csv"
}
took() { # COLLECTIVE: 1 MiB in 100 us, log on stdin
    local got
    got=$(logged "$1:8:1")
    [ "$got" = "collective,$1,float,1048576,8,1,,0.0001" ] || { echo "log of $1: $got" && failed=1; }
}
refused() { # MESSAGE, log on stdin
    local got
    got=$(logged all-gather:8:1)
    [ "$got" = "profile_gpu.py: $1" ] || { echo "refused with: $got, not: $1" && failed=1; }
}
new='#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong'
plain='#  size  count  type  time  algbw  busbw  error  time  algbw  busbw  error'
redop=${plain/type/type redop}
rooted=${plain/type/type root}
printf '%s\n' "$new" '1048576 262144 float sum -1 100.0 10.49 18.35 0 101.0 10.38 18.17 0' | took all-reduce
printf '%s\n' "$new" '1048576 32768 float none -1 100.0 10.49 9.18 0 101.0 10.38 9.08 0' | took all-gather
printf '%s\n' "$new" '1048576 32768 float sum -1 100.0 10.49 9.18 0 101.0 10.38 9.08 N/A' | took reduce-scatter
printf '%s\n' "$new" '1048576 262144 float none 0 100.0 10.49 10.49 0 101.0 10.38 10.38 0' | took broadcast
printf '%s\n' "$new" '1048576 262144 float sum 0 100.0 10.49 10.49 0 101.0 10.38 10.38 0' | took reduce
printf '%s\n' "$new" '1048576 32768 float none -1 100.0 10.49 9.18 0 101.0 10.38 9.08 N/A' | took all-to-all
printf '%s\n' "$redop" '1048576 262144 float sum 100.0 10.49 18.35 0e+00 101.0 10.38 18.17 0e+00' | took all-reduce
printf '%s\n' "$plain" '1048576 32768 float 100.0 9.18 9.18 0e+00 101.0 9.08 9.08 0e+00' | took all-gather
printf '%s\n' "$plain" '1048576 32768 float 100.0 10.49 9.18 0e+00 101.0 10.38 9.08 0e+00' | took all-gather
printf '%s\n' "$redop" '1048576 32768 float sum 100.0 9.18 9.18 0e+00 101.0 9.08 9.08 0e+00' | took reduce-scatter
printf '%s\n' "$rooted" '1048576 262144 float 0 100.0 10.49 10.49 0e+00 101.0 10.38 10.38 0e+00' | took broadcast
printf '%s\n' "$new" '1048576 262144 float sum 0 100.0 10.49 10.49 0e+00 101.0 10.38 10.38 0e+00' | took reduce
printf '%s\n' "$redop" '1048576 32768 float 100.0 10.49 9.18 0e+00 101.0 10.38 9.08 N/A' | took all-to-all
printf '%s\n' "$new" '1048576 32768 float 100.0 10.49 9.18 0 101.0 10.38 9.08 0' | took all-gather
printf '%s timestamp\n' "$new" | sed 's/$/\n1048576 262144 float sum -1 100.0 10.49 18.35 0 101.0 10.38 18.17 0 2025-01-01 10:00:00/' | took all-reduce
for line in '32768 float 100.0 9.18 9.18 0 101.0 9.08 9.08 0' '32768 float none -1 100.0 10.49 9.18 0 101.0 10.38 9.08 0'; do
    echo "1048576 $line" | took all-gather # without a header
done
printf '%s\n' "$plain" '8 2 float 9.73 0.00 0.00 0 9.9 0.00 0.00 0' '1048576 32768 float N/A 9.18 9.18 0 1 9.08 9.08 0' |
    refused "log:3: time is 'N/A', not a number"
printf '%s\n' "$plain" '1048576 32768 float 19.66 9.18 9.18 0 101.0 9.08 9.08 0' |
    refused 'log:2: 1048576 bytes in 19.66 us are 53.34 GB/s, but algbw is 9.18'
printf '%s\n' "$new" '1048576 32768 float none' | refused "log:2: 4 columns, nccl-tests' results have 13"
printf '%s\n' "${new//time/cputime}" '1048576 32768 float none -1 100.0 10.49 9.18 0 1 1 1 0' | refused "log:1: no column 'time'"
printf '%s\n' "$plain" '1048576 32768 float 0.00 9.18 9.18 0 101.0 9.08 9.08 0' | refused "log:2: time is '0.00', too short to tell"
refused "log has no line of nccl-tests' results" <<<'# nothing'
complaint() { # MESSAGE OPTION…
    local got
    got=$(python3 "$root/tools/profile_gpu.py" --name x --folder "$scratch" "${@:2}" 2>&1) && echo "${*:2}: not refused" && failed=1
    [ "$got" = "profile_gpu.py: $1" ] || { echo "${*:2}: $got, not: $1" && failed=1; }
}
complaint 'missing.log: No such file or directory' --nccl-tests all-reduce:8:1=missing.log
complaint 'missing.csv: No such file or directory' --from missing.csv
complaint 'missing.json: No such file or directory' --shapes missing.json
complaint '/dev/null is not what `dtsim explain --format json` writes' --shapes /dev/null
complaint '--nccl-tests alltoall:8:1=x: alltoall is none of all-reduce, all-gather, reduce-scatter, broadcast, reduce, all-to-all' \
    --nccl-tests alltoall:8:1=x
complaint '--nccl-tests reduce:8:3=x: every node of a group holds as many of its ranks, 2 or more' --nccl-tests reduce:8:3=x
# the line for cluster.intra goes through one group, the largest on one node: not through 2 of its GPUs with half the links
{
    echo kind,variant,dtype,a,b,c,d,seconds
    for size in 1000000 10000000 100000000; do
        awk -v s="$size" 'BEGIN {
            printf "collective,all-reduce,fp16,%d,2,1,,%.9g\ncollective,all-reduce,fp16,%d,8,1,,%.9g\n", s, 1e-5 + s / 100e9, s, 2e-5 + 1.75 * s / 200e9
            printf "collective,all-reduce,fp16,%d,16,2,,%.9g\n", s, 5e-5 + 1.875 * s / 20e9 }'
    done
} >"$scratch/groups.csv"
python3 "$root/tools/profile_gpu.py" --name groups --folder "$scratch" --from "$scratch/groups.csv" 2>/dev/null
for line in 'bandwidth: {value: 200 GB/s' 'base_latency: {value: 20 us' 'all-reduces of 8 '; do
    grep -q "$line" "$scratch/groups-cluster.yaml" || { echo "groups-cluster.yaml: no '$line'" && failed=1; }
done
# measuring collectives, with a stand-in for PyTorch: buffers are no larger than the call's, what does not fit on any rank is
# left out, and what one GPU measured is written before
python3 - "$root/tools" "$scratch" <<'END' || failed=1
import os, sys, types
sys.path.insert(0, sys.argv[1])
import profile_gpu
torch, distributed = types.ModuleType("torch"), types.ModuleType("torch.distributed")
scratch = sys.argv[2]
RANKS, LIMIT, other = 64, 1 << 27, 1 << 26 # bytes that fit here, elements of x with which another rank is full
held, largest = [0], {}
class OutOfMemory(RuntimeError): pass
class Tensor:
    def __init__(self, count, device, dtype=None):
        self.count, self.value, self.bytes = count, 0, 0
        if 2 * count + held[0] > LIMIT:
            raise OutOfMemory
        self.bytes = 2 * count
        held[0] += self.bytes
    def __del__(self): held[0] -= self.bytes
    def fill_(self, value): self.value = float(value)
    def __float__(self): return self.value
class Event:
    def __init__(self, enable_timing): pass
    def record(self): pass
    def elapsed_time(self, other): return 0.5
def used(name):
    def call(x, y=None):
        largest[name] = max(largest.get(name, 0), x.bytes + (y.bytes if y else 0))
    return call
def all_reduce(x, op=None):
    if not op:
        used("all-reduce")(x)
        assert 2 * x.count < other, "another rank has no memory"
    elif x.value == 0 and held[0] > other:
        x.value = 1.0
torch.float16, torch.zeros, torch.distributed, torch.__version__ = 2, Tensor, distributed, "0"
torch.cuda = types.SimpleNamespace(OutOfMemoryError=OutOfMemory, empty_cache=lambda: None, synchronize=lambda: None, Event=Event,
                                   is_available=lambda: True, set_device=lambda device: None)
distributed.get_world_size, distributed.all_reduce, distributed.broadcast = lambda: RANKS, all_reduce, used("broadcast")
distributed.all_gather_into_tensor = distributed.reduce_scatter_tensor = used("gather")
distributed.get_rank, distributed.ReduceOp = lambda: 0, types.SimpleNamespace(MAX=1)
distributed.init_process_group, distributed.barrier = lambda *_, **__: None, lambda: None
os.environ.update(LOCAL_WORLD_SIZE="8", WORLD_SIZE=str(RANKS), RANK="0")
sys.stderr = open(os.devnull, "w")
meter = profile_gpu.Meter(torch, 3, 0.1)
profile_gpu.measure_collectives(torch, meter, distributed, False)
sizes = {name: sorted(r[3] for r in meter.rows if r[1] == name) for name in ("all-reduce", "all-gather", "reduce-scatter", "broadcast")}
assert all(r[4:6] == [RANKS, 8] and r[7] == "5e-05" for r in meter.rows), meter.rows
assert all(found == [1 << e for e in range(12, 26, 2)] for found in sizes.values()), sizes
assert largest["all-reduce"] == largest["broadcast"] == 1 << 24 and largest["gather"] == (1 << 24) * 65 // 64, largest
for name in ("describe_device", "measure_memory", "measure_launch", "measure_host_link", "measure_small_gemm", "measure_gemm",
             "measure_attention"):
    setattr(profile_gpu, name, lambda *_: None)
profile_gpu.describe_device = lambda torch, meter: meter.rows.append(["device", "name:one", "", "", "", "", "", "0"])
def fails(*_): raise RuntimeError("the network fails")
profile_gpu.measure_collectives = fails
sys.modules["torch"], sys.modules["torch.distributed"] = torch, distributed
sys.argv = ["profile_gpu.py", "--name", "saved", "--folder", scratch]
try:
    profile_gpu.main()
except RuntimeError:
    pass
assert profile_gpu.read_rows(scratch + "/saved.csv") == [["device", "name:one", "", "", "", "", "", "0"]]
END
# a file that is none of ours is refused
if python3 "$root/tools/profile_gpu.py" --name x --folder "$scratch" --from "$scratch/whole.yaml" 2>"$scratch/message"; then
    echo "a YAML file was taken for measurements" && failed=1
fi
grep -q 'does not begin with kind,variant' "$scratch/message" || { echo "no message about the wrong file" && failed=1; }
exit "$failed"
