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
# a file that is none of ours is refused
if python3 "$root/tools/profile_gpu.py" --name x --folder "$scratch" --from "$scratch/whole.yaml" 2>"$scratch/message"; then
    echo "a YAML file was taken for measurements" && failed=1
fi
grep -q 'does not begin with kind,variant' "$scratch/message" || { echo "no message about the wrong file" && failed=1; }
exit "$failed"
