#!/usr/bin/env python3
"""The demo: a model answers a question through a cluster of three workers.

Prints the plan, starts `millrace up` with three stages, streams the answer,
then tokens per second and how full the pipeline was, and stops everything.
"""
import argparse
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

QUESTION = "What is the capital of France, and what is it known for?"
HERE = pathlib.Path(__file__).resolve().parent
STAGES = 3


def say(text):
    print(f"\n== {text}", flush=True)


def show_plan(millrace, model, options):
    """Prints the plan; the layers of its stages, as `up` names them."""
    say("the plan for the nodes of deploy/examples/three-nodes.yaml")
    cluster = HERE.parent.parent / "deploy/examples/three-nodes.yaml"
    command = [millrace, "plan", model, "--cluster", str(cluster), *options]
    subprocess.run(command, check=True)
    plan = json.loads(subprocess.run([*command, "--json"], check=True,
                                     capture_output=True, text=True).stdout)
    return [[part["first_layer"], part["last_layer"]] for part in plan["route"]]


def start(millrace, model, options, log):
    process = subprocess.Popen(
        [millrace, "up", model, "--stages", str(STAGES), "--port", "0",
         "--json", *options], stdout=subprocess.PIPE, stderr=log, text=True)
    for line in process.stdout:
        event = json.loads(line)
        if event.get("event") == "ready":
            return process, event
        if "error" in event:
            break
    process.wait()
    log.seek(0)
    sys.exit(f"{log.read()}demo: the cluster did not start")


def ask(url, question, tokens):
    """Streams one answer to the terminal; (tokens, seconds of decode)."""
    body = json.dumps({
        "messages": [{"role": "user", "content": question}],
        "max_tokens": tokens, "temperature": 0, "stream": True,
        "stream_options": {"include_usage": True}}).encode()
    request = urllib.request.Request(url + "/v1/chat/completions", body,
                                     {"Content-Type": "application/json"})
    first, last, usage = None, time.monotonic(), {}
    with urllib.request.urlopen(request, timeout=300) as reply:
        for line in reply:
            if not line.startswith(b"data: {"):
                continue
            chunk = json.loads(line[6:])
            if "error" in chunk:
                sys.exit(f"demo: {chunk['error']['message']}")
            usage = chunk.get("usage") or usage
            for choice in chunk["choices"]:
                text = choice["delta"].get("content") or ""
                if text:
                    last = time.monotonic()
                    first = first or last
                    print(text, end="", flush=True)
    print()
    generated = usage.get("completion_tokens", 0)
    return generated, max(last - (first or last), 1e-9)


def metric(text, name):
    found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
    return float(found.group(1)) if found else float("nan")


def show_cluster(event, planned):
    say(f"a coordinator at {event['url']} and {len(event['workers'])} workers")
    for worker in event["workers"]:
        first, last = worker["layers"]
        print(f"  {worker['name']:12} pid {worker['pid']:<8} "
              f"layers {first} to {last}")
    if [worker["layers"] for worker in event["workers"]] != planned:
        print(f"  (`up` makes {STAGES} stages for this machine; those nodes "
              "would be cut as planned above)")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--millrace", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--question", default=QUESTION)
    parser.add_argument("--max-tokens", type=int, default=120)
    args = parser.parse_args()
    options = ["--context", "2048", "--concurrency", "4"]
    planned = show_plan(args.millrace, args.model, options)
    log = tempfile.TemporaryFile("w+")
    process, event = start(args.millrace, args.model, options, log)
    try:
        show_cluster(event, planned)
        say(args.question)
        generated, seconds = ask(event["url"], args.question, args.max_tokens)
        with urllib.request.urlopen(event["url"] + "/metrics") as reply:
            metrics = reply.read().decode()
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=30)
    fill = metric(metrics, "millrace_coordinator_pipeline_fill_ratio")
    say(f"{generated} tokens, {(generated - 1) / seconds:.1f} tokens/s; "
        f"pipeline {100 * fill:.0f} % full (one client: one micro-batch)")
    say("stopped in order" if code == 0 else f"stopped with exit code {code}")
    return code


if __name__ == "__main__":
    sys.exit(main())
