#!/usr/bin/env python3
"""Measures this machine's GPU and writes a profile that dtsim loads.

    python3 tools/profile_gpu.py --name my-gpu --extends a100-40gb             needs PyTorch with CUDA (or ROCm)
    torchrun --nproc_per_node 8 tools/profile_gpu.py --name my-gpu …           collectives as well
    python3 tools/profile_gpu.py --name my-gpu --shapes why.json …             the kernels of a scenario as well, which
                                                                               `dtsim explain --format json` wrote
    python3 tools/profile_gpu.py --name my-gpu --from my-gpu.csv               the profile again, without a GPU

Writes NAME.csv, every single measurement, and NAME.yaml, the profile: put it into hardware/gpus/ or name it by its path,
`dtsim run SCENARIO --set cluster.gpu=./my-gpu.yaml`. With several GPUs NAME-cluster.yaml holds what belongs to `cluster`. See
docs/profiling.md for what is measured and how numbers follow from it.

Measuring (needs torch) and writing (the standard library only) are separate, so that the second is tested without a GPU.
"""
import argparse
import csv
import datetime
import decimal
import json
import math
import os
import re
import statistics
import sys

COLUMNS = ["kind", "variant", "dtype", "a", "b", "c", "d", "seconds"]
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce", "all-to-all")

# Keys that a profile cannot do without and that these measurements do not determine: what dtsim's A100 profile has.
# Only used without --extends.
ASSUMED = {
    "gemm": {"tile_m": "256", "tile_n": "128", "tile_efficiency": "0.9", "vector_efficiency": "0.9",
             "k_overhead": "221", "tile_overhead": "60", "alignment": "128 B", "misaligned_factor": "1.6",
             "vector": "16 B", "unvectored_factor": "2"},
    "flash": {"head_dim_half": "23", "length_overhead": "181", "tile": "128"},
}


# ---- measuring ------------------------------------------------------------------------------------------------------

class Meter:
    """Times GPU work with events; every result is one row."""

    def __init__(self, torch, repeats, seconds):
        self.torch, self.repeats, self.seconds, self.rows = torch, repeats, seconds, []

    def time(self, work):
        """Median seconds of one call, from batches long enough that the host does not matter."""
        cuda = self.torch.cuda
        for _ in range(3):
            work()
        cuda.synchronize()
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        cuda.synchronize()
        once = max(start.elapsed_time(end) * 1e-3, 1e-6)
        calls = max(1, min(100000, int(self.seconds / once)))
        times = []
        for _ in range(self.repeats):
            start.record()
            for _ in range(calls):
                work()
            end.record()
            cuda.synchronize()
            times.append(start.elapsed_time(end) * 1e-3 / calls)
        return statistics.median(times)

    def add(self, kind, variant, dtype, sizes, seconds):
        sizes = list(sizes) + [""] * (4 - len(sizes))
        self.rows.append([kind, variant, dtype, *sizes, f"{seconds:.6g}"])

    def measure(self, kind, variant, dtype, sizes, work):
        try:
            self.add(kind, variant, dtype, sizes, self.time(work))
        except self.torch.cuda.OutOfMemoryError:
            self.torch.cuda.empty_cache()
            print(f"no memory for {kind} {variant} {dtype} {sizes}: left out", file=sys.stderr)


def dtypes_of(torch):
    """Names, torch types and whether tf32 is on."""
    found = [("fp32", torch.float32, False), ("fp16", torch.float16, False)]
    if torch.cuda.is_bf16_supported():
        found += [("bf16", torch.bfloat16, False), ("tf32", torch.float32, True)]
    return found


def measure_gemm(torch, meter, quick):
    """(m, k)·(k, n) as the layers of a transformer need it: forward, input gradient, weight gradient."""
    hidden = [1024, 4096] if quick else [1024, 2048, 4096, 8192, 12288]
    tokens = [2048, 8192] if quick else [512, 2048, 8192, 16384]
    for name, dtype, tf32 in dtypes_of(torch):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        for h in hidden:
            for m in tokens:
                for k, n in ((h, 4 * h), (4 * h, h), (h, h)):
                    if name == "fp32" and h > 4096:
                        continue
                    x = torch.randn(m, k, device="cuda", dtype=dtype)
                    w = torch.randn(k, n, device="cuda", dtype=dtype)
                    y = torch.randn(m, n, device="cuda", dtype=dtype)
                    meter.measure("gemm", "forward", name, (1, m, k, n), lambda: x @ w)
                    meter.measure("gemm", "input", name, (1, m, n, k), lambda: y @ w.t())
                    meter.measure("gemm", "weight", name, (1, k, m, n), lambda: x.t() @ y)
                    del x, w, y
    torch.backends.cuda.matmul.allow_tf32 = False


def measure_small_gemm(torch, meter):
    x = torch.randn(64, 64, device="cuda", dtype=torch.float16)
    meter.measure("gemm", "small", "fp16", (1, 64, 64, 64), lambda: x @ x)


def sdpa_backends(torch):
    """A context manager per kernel of scaled_dot_product_attention."""
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
        return {"flash": lambda: sdpa_kernel(SDPBackend.FLASH_ATTENTION),
                "efficient": lambda: sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION),
                "math": lambda: sdpa_kernel(SDPBackend.MATH)}
    except ImportError:
        def old(**on):
            flags = {"enable_flash": False, "enable_mem_efficient": False, "enable_math": False}
            return lambda: torch.backends.cuda.sdp_kernel(**{**flags, **on})
        return {"flash": old(enable_flash=True), "efficient": old(enable_mem_efficient=True),
                "math": old(enable_math=True)}


def measure_attention(torch, meter, quick):
    """(batch, heads, length, head_dim), causal and not, forward and backward, by each kernel there is."""
    lengths = [1024, 4096] if quick else [512, 1024, 2048, 4096, 8192, 16384]
    for backend, choose in sdpa_backends(torch).items():
        for d in (64, 128):
            for length in lengths:
                if backend == "math" and length > 4096:
                    continue
                for causal in (False, True):
                    sizes = (max(1, 16384 // length), 2048 // d, length, d)
                    measure_one_attention(torch, meter, backend, choose, sizes, causal)


def measure_one_attention(torch, meter, backend, choose, sizes, causal):
    attend = torch.nn.functional.scaled_dot_product_attention
    dtype, name = (torch.bfloat16, "bf16") if torch.cuda.is_bf16_supported() else (torch.float16, "fp16")
    kind = f"attention-{backend}" + ("-causal" if causal else "")
    try:
        q, k, v = (torch.randn(*sizes, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3))
        with choose():
            meter.measure(kind, "forward", name, sizes, lambda: attend(q, k, v, is_causal=causal))
            out = attend(q, k, v, is_causal=causal)
            gradient = torch.randn_like(out)
            meter.measure(kind, "backward", name, sizes,
                          lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True))
    except RuntimeError as error:
        print(f"{kind} {sizes}: {str(error).splitlines()[0]}: left out", file=sys.stderr)


def shapes_of(path):
    """Products (direction, dtype, batch, m, k, n) and attention (dtype, batch, heads, length, head_dim, causal) of a
    scenario, from `dtsim explain --format json`."""
    with open(path, encoding="utf-8") as file:
        try:
            kernels = json.load(file)["kernels"]
        except (ValueError, KeyError, TypeError):
            sys.exit(f"profile_gpu.py: {path} is not what `dtsim explain --format json` writes")
    products, attention = set(), set()
    variants = {"forward": "forward", "recompute": "forward", "backward": "input", "backward-weight": "weight"}
    for kernel in kernels:
        shape, variant = kernel.get("shape") or "", variants.get(kernel["direction"])
        product = re.fullmatch(r"(?:(\d+) x )?\((\d+), (\d+)\)·\(\d+, (\d+)\) (\w+)", shape)
        heads = re.fullmatch(r"(\d+) x (\d+) heads of (\d+), (\d+) x (\d+)(, causal)?", shape)
        if product and variant:
            batch, m, k, n, dtype = product.groups()
            # experts run all at once, or four at a time, or one by one: as the stack says
            batches = {int(batch), 4, int(batch) % 4, 1} - {0} if batch else {1}
            products |= {(variant, dtype, b, int(m), int(k), int(n)) for b in batches}
        elif heads and heads[4] == heads[5]:
            attention.add((int(heads[1]), int(heads[2]), int(heads[4]), int(heads[3]), heads[6] is not None))
    return sorted(products), sorted(attention)


def measure_shapes(torch, meter, products, attention):
    """The very products and attention kernels of a scenario, for `measured:` of the profile."""
    types = {name: (dtype, tf32) for name, dtype, tf32 in dtypes_of(torch)}
    for variant, name, batch, m, k, n in products:
        if name not in types:
            print(f"products in {name} are not measured: left out", file=sys.stderr)
            continue
        dtype, torch.backends.cuda.matmul.allow_tf32 = types[name]
        x = torch.randn(*((k, m) if variant == "weight" else (m, k)), device="cuda", dtype=dtype)
        y = torch.randn(*((n, k) if variant == "input" else (k, n)), device="cuda", dtype=dtype)
        x, y = x.t() if variant == "weight" else x, y.t() if variant == "input" else y
        if batch > 1:
            x, y = x.unsqueeze(0).repeat(batch, 1, 1), y.unsqueeze(0).repeat(batch, 1, 1)
        meter.measure("gemm", variant, name, (batch, m, k, n), lambda: x @ y)
        del x, y
    torch.backends.cuda.matmul.allow_tf32 = False
    choose = sdpa_backends(torch)["flash"]
    for batch, heads, length, d, causal in attention:
        measure_one_attention(torch, meter, "flash", choose, (batch, heads, length, d), causal)


def measure_memory(torch, meter):
    """Copies within the device memory; a byte that is copied is read and written."""
    for exponent in range(10, 31, 2):
        size = 1 << exponent
        if 2 * size > 0.7 * torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory:
            break
        a = torch.empty(size, device="cuda", dtype=torch.uint8)
        b = torch.empty_like(a)
        meter.measure("memory", "copy", "uint8", (2 * size,), lambda: b.copy_(a))


def measure_launch(torch, meter):
    """Host time to issue a kernel: far more launches than the GPU can keep up with would block, so few at a time."""
    import time
    x = torch.zeros(1, device="cuda")
    for variant, work in (("forward", lambda: x.add_(1)), ("matmul", None)):
        if work is None:
            y = torch.zeros(16, 16, device="cuda")
            work = lambda: torch.mm(y, y)
        best = []
        for _ in range(20):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(100):
                work()
            best.append((time.perf_counter() - begin) / 100)
        meter.add("launch", variant, "fp32", (100,), statistics.median(best))
    torch.cuda.synchronize()


def measure_host_link(torch, meter):
    for pinned in (True, False):
        for exponent in (16, 20, 24, 28):
            size = 1 << exponent
            host = torch.empty(size, dtype=torch.uint8, pin_memory=pinned)
            device = torch.empty(size, dtype=torch.uint8, device="cuda")
            kind = "pinned" if pinned else "pageable"
            meter.measure("host", f"h2d-{kind}", "uint8", (size,), lambda: device.copy_(host, non_blocking=pinned))
            meter.measure("host", f"d2h-{kind}", "uint8", (size,), lambda: host.copy_(device, non_blocking=pinned))


def collective_buffers(torch, name, size, ranks):
    """What every rank holds and, where it is another size, the whole tensor; None without the memory for them."""
    scattered = name in ("all-gather", "reduce-scatter")
    elements = max(1, (size // ranks if scattered else size) // 2)
    try:
        x = torch.zeros(elements, device="cuda", dtype=torch.float16)
        return x, torch.zeros(elements * ranks, device="cuda", dtype=torch.float16) if scattered else None
    except torch.cuda.OutOfMemoryError:
        return None


def measure_collectives(torch, meter, distributed, quick):
    """Every rank takes part; the slowest one's time counts. A size for which any has no memory is left out by all."""
    ranks = distributed.get_world_size()
    nodes = ranks // int(os.environ.get("LOCAL_WORLD_SIZE", str(ranks)))
    calls = {
        "all-reduce": lambda x, y: distributed.all_reduce(x),
        "all-gather": lambda x, y: distributed.all_gather_into_tensor(y, x),
        "reduce-scatter": lambda x, y: distributed.reduce_scatter_tensor(x, y),
        "broadcast": lambda x, y: distributed.broadcast(x, 0),
    }
    shared = torch.zeros(1, device="cuda")  # there before memory may run out

    def most(value):
        """The largest among all ranks."""
        shared.fill_(value)
        distributed.all_reduce(shared, op=distributed.ReduceOp.MAX)
        return float(shared)

    for exponent in range(12, 29 if quick else 31, 2):
        size = 1 << exponent  # of the whole tensor
        for name, call in calls.items():
            buffers = collective_buffers(torch, name, size, ranks)
            if most(buffers is None):
                buffers = None
                torch.cuda.empty_cache()
                if distributed.get_rank() == 0:
                    print(f"no memory for {name} of {size} bytes on some GPU: left out", file=sys.stderr)
                continue
            # a fixed number of calls: ranks that chose for themselves would wait for each other for ever
            for _ in range(3):
                call(*buffers)
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            times = []
            for _ in range(meter.repeats):
                torch.cuda.synchronize()
                start.record()
                for _ in range(10):
                    call(*buffers)
                end.record()
                torch.cuda.synchronize()
                times.append(start.elapsed_time(end) * 1e-4)
            meter.add("collective", name, "fp16", (size, ranks, nodes), most(statistics.median(times)))
            del buffers


def describe_device(torch, meter):
    """What the driver says about the GPU: rows of kind `device`, the number in the last column."""
    p = torch.cuda.get_device_properties(torch.cuda.current_device())
    facts = {"name:" + p.name: 0, "multiprocessors": p.multi_processor_count, "memory_B": p.total_memory,
             "compute_capability": p.major + p.minor / 10}
    for name, factor in (("clock_rate", 1e3), ("memory_clock_rate", 1e3), ("memory_bus_width", 1), ("L2_cache_size", 1)):
        value = getattr(p, name, 0)
        if value:
            facts[name] = value * factor
    for name, value in facts.items():
        meter.rows.append(["device", name, "", "", "", "", "", f"{value:.12g}"])
    meter.rows.append(["device", "software:PyTorch " + torch.__version__, "", "", "", "", "", "0"])


def measure(arguments):
    """All rows; None on ranks that have nothing to write."""
    kernels = shapes_of(arguments.shapes) if arguments.shapes else None
    try:
        import torch
    except ImportError:
        sys.exit("profile_gpu.py: PyTorch is needed to measure; --from FILE.csv writes a profile without it")
    if not torch.cuda.is_available():
        sys.exit("profile_gpu.py: PyTorch sees no GPU")
    rank = int(os.environ.get("RANK", "0"))
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    meter = Meter(torch, 3 if arguments.quick else 7, arguments.seconds or (0.02 if arguments.quick else 0.1))
    if several:
        import torch.distributed as distributed
        # the others wait at a barrier while the first one measures alone: longer than the ten minutes of the default
        distributed.init_process_group("nccl", timeout=datetime.timedelta(hours=2))
    if rank == 0:
        describe_device(torch, meter)
        for what, work in (("memory", lambda: measure_memory(torch, meter)),
                           ("launches", lambda: measure_launch(torch, meter)),
                           ("host link", lambda: measure_host_link(torch, meter)),
                           ("small products", lambda: measure_small_gemm(torch, meter)),
                           ("products", lambda: measure_gemm(torch, meter, arguments.quick)),
                           ("attention", lambda: measure_attention(torch, meter, arguments.quick))):
            print(f"measuring {what} …", file=sys.stderr)
            work()
        if kernels:
            print(f"measuring the kernels of {arguments.shapes} …", file=sys.stderr)
            measure_shapes(torch, meter, *kernels)
    if several:
        if rank == 0:
            write_rows(arguments.raw, meter.rows)  # so that a network that fails does not lose them
            print("measuring collectives …", file=sys.stderr)
        distributed.barrier()
        measure_collectives(torch, meter, distributed, arguments.quick)
        distributed.destroy_process_group()
    return meter.rows if rank == 0 else None


# ---- the profile ----------------------------------------------------------------------------------------------------

class Measurements:
    """Rows read back as numbers."""

    def __init__(self, rows):
        self.rows = [[*row[:3], *(float(x) if x not in ("", None) else 0.0 for x in row[3:8])] for row in rows]

    def of(self, kind, variant=None, dtype=None):
        return [r for r in self.rows if r[0] == kind and variant in (None, r[1]) and dtype in (None, r[2])]

    def fact(self, name, default=0.0):
        return next((r[7] for r in self.of("device", name)), default)

    def text(self, prefix, default):
        return next((r[1][len(prefix):] for r in self.rows if r[0] == "device" and r[1].startswith(prefix)), default)


def number(value, digits=4):
    """Four digits, without an exponent."""
    text = f"{value:.{digits}g}"
    return f"{float(text):f}".rstrip("0").rstrip(".") if "e" in text else text


def gemm_rates(m, dtype, variant=None):
    """FLOP/s of large products: b·a·c of (m, k)·(k, n)."""
    return [(2 * r[3] * r[4] * r[5] * r[6] / r[7], r) for r in m.of("gemm", variant, dtype) if r[1] != "small"]


def sustained(rates):
    """What large products reach: the mean of the best tenth, so that one lucky row does not decide."""
    best = sorted((rate for rate, _ in rates), reverse=True)
    best = best[:max(1, len(best) // 10)]
    return sum(best) / len(best)


def weight_factor(m, dtype):
    """Time of the weight-gradient product over that of the forward product of the same layer (geometric mean)."""
    forward = {(r[4], r[5], r[6]): r[7] for r in m.of("gemm", "forward", dtype)}  # m, k, n
    ratios = [r[7] / forward[(r[5], r[4], r[6])]
              for r in m.of("gemm", "weight", dtype) if (r[5], r[4], r[6]) in forward]  # k, m, n
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def flash_efficiency(m, direction, peak):
    """Best share of the peak at head dimension 128, not causal; 4·b·h·s²·d FLOP forward, 2.5 times that backward."""
    work = 4 if direction == "forward" else 10
    shares = [work * r[3] * r[4] * r[5] ** 2 * r[6] / r[7] / peak for r in m.of("attention-flash", direction)
              if r[6] == 128]
    return max(shares) if shares else None


class Writer:
    """YAML with a source for everything."""

    def __init__(self):
        self.lines = []

    def comment(self, text):
        self.lines.append("# " + text)

    def put(self, key, value, source=None, depth=0):
        text = "  " * depth + f"{key}: "
        self.lines.append(text + (f'{{value: {value}, source: "{source}"}}' if source else str(value)))

    def open(self, key, source=None, depth=0):
        self.lines.append("  " * depth + f"{key}:")
        if source:
            self.lines.append("  " * (depth + 1) + f'source: "{source}"')

    def text(self):
        return "\n".join(self.lines) + "\n"


def add_peaks(m, w, given, origin):
    """Peak rates: those that were given, else the best that was measured (then the efficiency is 1)."""
    peaks = {}
    for dtype in ("fp32", "tf32", "fp16", "bf16"):
        rates = gemm_rates(m, dtype)
        if dtype in given:
            peaks[dtype] = (given[dtype], "given on the command line of tools/profile_gpu.py")
        elif rates:
            peaks[dtype] = (sustained(rates), origin + ": the best products, no data sheet was given")
    if peaks:
        w.open("peak")
        for dtype, (rate, source) in peaks.items():
            w.put(dtype, number(rate / 1e12) + " TFLOP/s", source, 1)
    return {dtype: rate for dtype, (rate, _) in peaks.items()}


def add_gemm(m, w, peak, dtype, origin, whole):
    rates = gemm_rates(m, dtype)
    factor = weight_factor(m, dtype)
    small = [r[7] for r in m.of("gemm", "small")]
    if not rates:
        return
    w.open("gemm")
    w.put("max_efficiency", number(min(1, sustained(rates) / peak)), f"{origin}: best tenth of {len(rates)} {dtype} "
          "products over the peak", 1)
    if factor is not None:
        w.put("weight_gradient_factor", number(min(10, max(0.1, factor))),
              f"{origin}: weight-gradient over forward products of the same size", 1)
    elif whole:
        w.put("weight_gradient_factor", "1.05", "assumed: no pair of products of one size was measured", 1)
    w.put("floor", number((min(small) if small else 4e-6) * 1e6) + " us",
          f"{origin}: product of 64 x 64 x 64" if small else "assumed", 1)
    if whole:
        for key, value in ASSUMED["gemm"].items():
            w.put(key, value, "assumed, as on an A100: not determined by tools/profile_gpu.py", 1)


def add_memory(m, w, bandwidth, origin):
    rows = sorted(m.of("memory", "copy"), key=lambda r: r[3])
    if not rows or not bandwidth:
        return
    best = max(r[3] / r[7] for r in rows)
    w.open("memory_kernel")
    w.put("efficiency", number(min(1, best / bandwidth)), f"{origin}: copies reach {number(best / 1e9)} GB/s", 1)
    w.put("floor", number(min(r[7] for r in rows) * 1e6) + " us", f"{origin}: smallest copy", 1)


def add_flash(m, w, peak, origin, whole):
    found = {d: flash_efficiency(m, d, peak) for d in ("forward", "backward")}
    if not all(found.values()) and not whole:
        return
    w.open("flash")
    for direction, share in found.items():
        if share:
            w.put(direction, number(min(1, share)), f"{origin}: flash attention, head dimension 128", 1)
        else:
            w.put(direction, "0.5", "assumed: no flash attention here", 1)
    if whole:
        for key, value in ASSUMED["flash"].items():
            w.put(key, value, "assumed, as on an A100: not determined by tools/profile_gpu.py", 1)


def host_rate(m):
    rows = m.of("host", "h2d-pinned") + m.of("host", "d2h-pinned")
    return max((r[3] / r[7] for r in rows), default=0)


def gpu_profile(m, arguments):
    device = m.text("name:", "unknown GPU")
    origin = f"measured by tools/profile_gpu.py on {device}, {m.text('software:', 'unknown software')}"
    whole = not arguments.extends
    w = Writer()
    w.comment(f"{device}, measured by tools/profile_gpu.py. Raw numbers: {os.path.basename(arguments.raw)}")
    if arguments.extends:
        w.put("extends", arguments.extends)
    w.put("name", f'"{device}"')
    for vendor in ("nvidia", "amd", "intel"):
        if vendor in device.lower():
            w.put("vendor", vendor)
    driver = f"the driver, through {m.text('software:', 'PyTorch')}"
    if m.fact("multiprocessors"):
        w.put("multiprocessors", number(m.fact("multiprocessors"), 6), driver)
    if m.fact("memory_B"):
        w.put("memory", f"{m.fact('memory_B') / 2**20:.0f} MiB", driver)
    if m.fact("compute_capability"):
        w.put("compute_capability", number(m.fact("compute_capability")), driver)
    if m.fact("L2_cache_size"):
        w.put("l2", f"{m.fact('L2_cache_size') / 2**20:.4g} MiB", driver)
    bandwidth = arguments.memory_bandwidth * 1e9
    source = "given on the command line of tools/profile_gpu.py"
    if not bandwidth and m.fact("memory_clock_rate") and m.fact("memory_bus_width"):
        bandwidth = 2 * m.fact("memory_clock_rate") * m.fact("memory_bus_width") / 8
        source = driver + ": twice the memory clock times the bus width"
    if not bandwidth:
        bandwidth = max((r[3] / r[7] for r in m.of("memory", "copy")), default=0)
        source = origin + ": the fastest copy, no data sheet was given"
    if bandwidth:
        w.put("memory_bandwidth", number(bandwidth / 1e9) + " GB/s", source)
    given = dict((name, float(rate) * 1e12) for name, rate in (p.split("=") for p in arguments.peak))
    peaks = add_peaks(m, w, given, origin)
    dtype = next((d for d in ("bf16", "fp16", "fp32") if d in peaks), None)
    if dtype:
        add_gemm(m, w, peaks[dtype], dtype, origin, whole)
        add_flash(m, w, peaks[dtype], origin, whole)
    add_memory(m, w, bandwidth, origin)
    if host_rate(m):
        w.put("pcie_bandwidth", number(host_rate(m) / 1e9) + " GB/s", origin + ": pinned copies")
    if any(r[1] != "small" for r in m.of("gemm")) or m.of("attention-flash") or m.of("attention-flash-causal"):
        w.put("measured", os.path.relpath(arguments.raw, arguments.folder), origin + ": taken for these very shapes")
    launches = {r[1]: r[7] for r in m.of("launch")}
    if launches:
        w.comment(f"host time of a launch here: {number(max(launches.values()) * 1e6)} us; it belongs to the stack's "
                  "profile (stack.launch)")
    return w.text()


def fit_line(points):
    """t = base + bytes / rate, least squares of relative errors."""
    sw = swx = swxx = swy = swxy = 0.0
    for x, y in points:
        weight = 1 / y ** 2
        sw, swx, swxx = sw + weight, swx + weight * x, swxx + weight * x * x
        swy, swxy = swy + weight * y, swxy + weight * x * y
    slope = (sw * swxy - swx * swy) / (sw * swxx - swx * swx)
    return (swy - slope * swx) / sw, 1 / slope


def intra_profile(m):
    """cluster.intra from all-reduces: 2(n-1)/n · S bytes leave each port of a ring. Of the largest group on one node
    that was measured at three sizes or more: smaller ones have fewer steps and perhaps fewer links."""
    groups = {}
    for r in m.of("collective", "all-reduce"):
        if r[4] > 1 and r[5] <= 1:  # on one node, or the number was not written
            groups.setdefault(r[4], []).append((r[3], r[7]))
    ranks = max((n for n, rows in groups.items() if len({size for size, _ in rows}) >= 3), default=None)
    if ranks is None:
        return None
    points = [(2 * (ranks - 1) / ranks * size, seconds) for size, seconds in groups[ranks]]
    base, rate = fit_line(points)
    rate = max(rate, max(x / y for x, y in points if y > 0))
    origin = (f"measured by tools/profile_gpu.py: all-reduces of {number(ranks)} {m.text('name:', 'GPUs')}, "
              "time = base + bytes / bandwidth")
    w = Writer()
    w.open("intra")
    w.put("kind", "nvswitch", depth=1)
    w.put("bandwidth", number(rate / 1e9) + " GB/s", origin + "; so efficiency is 1", 1)
    w.put("efficiency", "1", "the bandwidth is a measured one", 1)
    w.put("base_latency", number(max(base, 1e-6) * 1e6) + " us", origin, 1)
    return w.text()


def cluster_profile(m, arguments):
    """What goes into `cluster`: the curves themselves, and cluster.intra from those of one node."""
    if not m.of("collective"):
        return None
    w = Writer()
    w.comment(f"Keys for `cluster:` of a scenario or of a profile, no profile by themselves. Raw numbers: "
              f"{os.path.basename(arguments.raw)}")
    w.put("measured", os.path.relpath(arguments.raw, arguments.folder),
          "measured by tools/profile_gpu.py: taken for groups of as many ranks on as many nodes")
    return w.text() + (intra_profile(m) or "")


# ---- the command ----------------------------------------------------------------------------------------------------

def read_row(place, row):
    """As many cells as there are columns, and numbers where numbers belong."""
    if len(row) != len(COLUMNS):
        sys.exit(f"profile_gpu.py: {place}: {len(row)} columns, not {len(COLUMNS)}")
    for name, text in zip(COLUMNS[3:], row[3:]):
        if text != "" or name == "seconds":
            figure(place, name, text)
    if row[0] != "device" and float(row[7]) == 0:
        sys.exit(f"profile_gpu.py: {place}: seconds is '{row[7]}', and nothing takes no time")
    return row


def read_rows(path):
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            if next(reader, None) != COLUMNS:
                sys.exit(f"profile_gpu.py: {path} does not begin with {','.join(COLUMNS)}")
            return [read_row(f"{path}:{reader.line_num}", row) for row in reader if row]
    except (UnicodeDecodeError, csv.Error) as error:
        sys.exit(f"profile_gpu.py: {path} is no table: {error}")


def figure(place, name, text):
    """A number of a log and half a unit of its last digit."""
    try:
        value = decimal.Decimal(text)
    except decimal.InvalidOperation:
        value = decimal.Decimal("NaN")
    if not value.is_finite() or value < 0:
        sys.exit(f"profile_gpu.py: {place}: {name} is '{text}', not a number")
    return float(value), 0.5 * 10.0 ** value.as_tuple().exponent


def time_column(place, cells, header):
    """Where the first time stands. Older tests of all-gathers have neither redop nor root, others one of them, and
    all-to-alls leave redop blank; logs without out-of-place results leave four more blank."""
    if header and len(cells) >= len(header):
        return header.index("time")
    column = {7: 3, 8: 4, 9: 5, 11: 3, 12: 4, 13: 5}.get(len(cells))
    if column is None:
        sys.exit(f"profile_gpu.py: {place}: {len(cells)} columns, nccl-tests' results have {len(header or range(13))}")
    return column


def read_nccl_line(place, cells, header, collective, ranks):
    """Seconds of one line, whose algbw has to be the size over the time."""
    column = time_column(place, cells, header)
    size = int(cells[0])
    time, time_off = figure(place, "time", cells[column])
    if time <= time_off:
        sys.exit(f"profile_gpu.py: {place}: time is '{cells[column]}', too short to tell")
    rate, rate_off = figure(place, "algbw", cells[column + 1])
    # up to June 2020 the rate of these left out the part that every rank has already
    factors = (1, (ranks - 1) / ranks) if collective in ("all-gather", "reduce-scatter") else (1,)
    low, high = (0.99 * size * 1e-3 / (time + time_off), 1.01 * size * 1e-3 / (time - time_off))  # GB/s
    if not any(f * low <= rate + rate_off and rate - rate_off <= f * high for f in factors):
        sys.exit(f"profile_gpu.py: {place}: {size} bytes in {cells[column]} us are {number(size * 1e-3 / time)} GB/s, "
                 f"but algbw is {cells[column + 1]}")
    return time * 1e-6


def read_nccl_tests(given):
    """Rows of COLLECTIVE:RANKS:NODES=FILE, a log of nccl-tests: size, count, type, redop, root, time in us, …; its size
    is what dtsim counts, too: the larger of what a rank sends and receives, so the whole tensor, and of an all-to-all
    what one rank holds. Out of place, as frameworks call them but for all-reduces, which hardly differ."""
    match = re.fullmatch(r"([a-z-]+):(\d+):(\d+)=(.+)", given)
    if not match:
        sys.exit(f"profile_gpu.py: --nccl-tests {given}: write COLLECTIVE:RANKS:NODES=FILE, such as all-reduce:16:2=LOG")
    collective, ranks, nodes, path = match[1], int(match[2]), int(match[3]), match[4]
    if collective not in COLLECTIVES:
        sys.exit(f"profile_gpu.py: --nccl-tests {given}: {collective} is none of {', '.join(COLLECTIVES)}")
    if ranks < 2 or nodes < 1 or ranks % nodes:
        sys.exit(f"profile_gpu.py: --nccl-tests {given}: every node of a group holds as many of its ranks, 2 or more")
    rows, header = [], None
    with open(path, encoding="utf-8", errors="replace") as file:
        for line_number, line in enumerate(file, 1):
            cells, names, place = line.split(), line.strip().lstrip("#").split(), f"{path}:{line_number}"
            if "size" in names and "algbw" in names:
                header = names
                if "time" not in header:
                    sys.exit(f"profile_gpu.py: {place}: no column 'time'")
            elif len(cells) > 2 and cells[0].isdigit() and cells[1].isdigit() and int(cells[0]) > 0:
                seconds = read_nccl_line(place, cells, header, collective, ranks)
                rows.append(["collective", collective, cells[2], cells[0], ranks, nodes, "", f"{seconds:.6g}"])
    if not rows:
        sys.exit(f"profile_gpu.py: {path} has no line of nccl-tests' results")
    return rows


def write_rows(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    print(path, file=sys.stderr)


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    print(path, file=sys.stderr)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--name", required=True, help="name of the profile and of the files")
    parser.add_argument("--folder", default=".", help="where to write (default: here)")
    parser.add_argument("--extends", metavar="GPU", help="a GPU that dtsim knows: only what was measured is replaced")
    parser.add_argument("--peak", action="append", default=[], metavar="TYPE=TFLOPS",
                        help="dense peak of the data sheet, e.g. bf16=312; repeatable")
    parser.add_argument("--memory-bandwidth", type=float, default=0, metavar="GB/S", help="of the data sheet")
    parser.add_argument("--quick", action="store_true", help="fewer sizes: a minute instead of ten")
    parser.add_argument("--shapes", metavar="FILE.json",
                        help="measure the kernels that `dtsim explain SCENARIO --format json` lists, too")
    parser.add_argument("--nccl-tests", action="append", default=[], metavar="COLLECTIVE:RANKS:NODES=LOG",
                        help="take collectives from a log of nccl-tests, such as all-reduce:16:2=LOG; repeatable")
    parser.add_argument("--seconds", type=float, metavar="S",
                        help="how long each kernel runs, seven times (default 0.1): some seconds bring the GPU to the "
                        "power limit where training keeps it")
    parser.add_argument("--from", dest="source", metavar="FILE.csv", help="write the profile from these measurements")
    return parser.parse_args()


def run(arguments):
    stem = os.path.join(arguments.folder, arguments.name)
    rows = [row for given in arguments.nccl_tests for row in read_nccl_tests(given)]
    arguments.raw = stem + ".csv" if rows or not arguments.source else arguments.source
    if arguments.source:
        rows = read_rows(arguments.source) + rows
    elif not rows:
        rows = measure(arguments)
    if rows is None:
        return
    if arguments.raw != arguments.source:
        write_rows(arguments.raw, rows)
    m = Measurements(rows)
    if m.of("device"):
        write(stem + ".yaml", gpu_profile(m, arguments))
    cluster = cluster_profile(m, arguments)
    if cluster:
        write(stem + "-cluster.yaml", cluster)


def main():
    try:
        run(parse_arguments())
    except OSError as error:
        if error.filename is None:
            raise
        sys.exit(f"profile_gpu.py: {error.filename}: {error.strerror}")


if __name__ == "__main__":
    main()
