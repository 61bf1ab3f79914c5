#!/usr/bin/env bash
# Runs the kernels on the CUDA device of this machine and writes a report. It needs the program `plumbline` beside it, built
# elsewhere with `cargo build --release -p plumbline-conformance --features cuda`, a driver, and nothing else; where
# compute-sanitizer is installed, it is used. Exit code: 0 where everything holds, 1 where something does not, 2 where there
# is no device.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=${PLUMBLINE:-$here/plumbline}
report=${1:-$here/report.md}
failed=0

if [ ! -x "$program" ]; then
    echo "no program at $program" >&2
    exit 2
fi
if ! devices=$(nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader 2>/dev/null); then
    echo "no CUDA device: nvidia-smi does not answer" >&2
    exit 2
fi

# Runs a command of at most so many seconds, appends what it prints at the end, and notes a failure.
step() {
    local title=$1 seconds=$2
    shift 2
    local start=$SECONDS output status
    output=$(timeout "$seconds" "$@" 2>&1)
    status=$?
    [ $status -eq 0 ] || failed=1
    {
        printf '\n## %s\n\nExit code %s after %s s.\n\n```text\n' "$title" "$status" "$((SECONDS - start))"
        printf '%s\n' "$output" | tail -n 40
        printf '```\n'
    } >> "$report"
}

{
    printf '# Kernels on a device, %s\n\n' "$(date -u +%Y-%m-%d)"
    printf -- '- device: %s\n- program: SHA-256 %s\n' "$devices" "$(sha256sum "$program" | cut -d' ' -f1)"
} > "$report"

step "Golden cases, all operations with a kernel" 120 "$program" verify --backend gpu
if command -v compute-sanitizer > /dev/null; then
    step "Memory, KL estimates" 60 compute-sanitizer --error-exitcode 1 "$program" verify --backend gpu --filter kl.k3
    step "Memory, an objective" 120 compute-sanitizer --error-exitcode 1 "$program" verify --backend gpu --filter gspo_token
else
    printf '\ncompute-sanitizer is not installed: memory was not checked.\n' >> "$report"
fi
echo "report in $report"
exit $failed
