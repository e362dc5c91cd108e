"""What the integration tests share: a tiny model, a cluster, clients."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

PATIENCE = 60  # seconds until something that must happen counts as missing


def programs():
    """(millrace, tiny_model) as ctest hands them over."""
    return sys.argv[-2], sys.argv[-1]


def main():
    """Runs the tests of the calling module; the last two arguments are the
    programs."""
    argv = sys.argv[:-2] if len(sys.argv) > 2 else sys.argv
    unittest.main(module="__main__", argv=argv, verbosity=2)


def make_model(folder, *options, name="tiny.gguf"):
    path = pathlib.Path(folder) / name
    subprocess.run([programs()[1], "--out", str(path), *options], check=True)
    return str(path)


class ModelTest(unittest.TestCase):
    """Tests that share one tiny model in a folder that goes with them."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = make_model(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_millrace(self, *arguments, **options):
        """A command to its end, whatever that is."""
        return subprocess.run([programs()[0], *arguments], capture_output=True,
                              text=True, timeout=300, check=False, **options)

    def millrace(self, *arguments, code=0):
        """Standard output of a command that ends with `code`."""
        done = self.run_millrace(*arguments)
        self.assertEqual(done.returncode, code,
                         f"{arguments}: {done.stdout} {done.stderr}")
        return done.stdout

    def json_of(self, *arguments):
        """The one document of a command, and it is one line."""
        out = self.millrace(*arguments, "--json")
        self.assertEqual(out.count("\n"), 1)
        return json.loads(out)


def wait_for(condition, what):
    """Polls until condition() is true; its last value."""
    end = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not happen in {PATIENCE} s")
        time.sleep(0.02)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def resident_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    raise AssertionError(f"process {pid} has no resident set")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    ticks = os.sysconf("SC_CLK_TCK")
    return (int(fields[11]) + int(fields[12])) / ticks


class Client:
    """One server's API."""

    def __init__(self, url):
        self.url = url
        self.key = None  # what GET requests show where the server wants one

    def get(self, path):
        """(status, body text)."""
        request = urllib.request.Request(self.url + path)
        if self.key is not None:
            request.add_header("Authorization", f"Bearer {self.key}")
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as r:
                return r.status, r.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def post(self, path, fields):
        """(status, parsed body)."""
        request = urllib.request.Request(
            self.url + path, json.dumps(fields).encode(),
            {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE * 2) as r:
                return r.status, json.load(r)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def chat(self, text, tokens=16, **fields):
        status, body = self.post("/v1/chat/completions", {
            "messages": [{"role": "user", "content": text}],
            "max_tokens": tokens, "temperature": 0, "ignore_eos": True,
            **fields})
        if status != 200:
            raise AssertionError(f"{status}: {body}")
        return body["choices"][0]["message"]["content"]

    def events(self, text, tokens, on_first=None):
        """The events of a stream, the parsed ones; raw [DONE] as a string."""
        request = urllib.request.Request(
            self.url + "/v1/chat/completions", json.dumps({
                "messages": [{"role": "user", "content": text}],
                "max_tokens": tokens, "temperature": 0, "ignore_eos": True,
                "stream": True}).encode(),
            {"Content-Type": "application/json"})
        events = []
        with urllib.request.urlopen(request, timeout=PATIENCE * 2) as reply:
            for line in reply:
                if line.startswith(b"data: {"):
                    events.append(json.loads(line[6:]))
                    if on_first and len(events) == 3:
                        on_first()
                elif line.startswith(b"data: "):
                    events.append(line[6:].strip().decode())
        return events

    def metric(self, name):
        for line in self.get("/metrics")[1].splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        raise AssertionError(f"no metric {name}")


class Process:
    """A millrace command that prints events; ended with the test."""

    def __init__(self, test, *arguments, environment=None, pass_fds=()):
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
            [programs()[0], *arguments], stdout=subprocess.PIPE,
            stderr=self.log, text=True, pass_fds=pass_fds,
            env={**os.environ, **(environment or {})})
        self.pid = self.process.pid
        test.addCleanup(self.end)

    def event(self, name):
        """The next event of that name."""
        for line in self.process.stdout:
            event = json.loads(line)
            if event.get("event") == name:
                return event
            if "error" in event:
                raise AssertionError(f"error instead of {name}: {event}")
        raise AssertionError(f"ended before {name}: {self.read_log()}")

    def read_log(self):
        self.log.seek(0)
        return self.log.read()[-2000:]

    def stop(self):
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=20)

    def end_now(self):
        """As when its machine fails."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def end(self):
        self.end_now()
        self.process.stdout.close()
        self.log.close()


class Cluster(Process):
    """`millrace up`, ready."""

    def __init__(self, test, model, stages=3, *options):
        super().__init__(test, "up", model, "--stages", str(stages), "--port",
                         "0", "--json", *options)
        self.ready = self.event("ready")
        self.client = Client(self.ready["url"])
        self.workers = self.ready["workers"]


def together(calls):
    """Runs the calls at once; their results in order."""
    results = [None] * len(calls)

    def run(index):
        try:
            results[index] = calls[index]()
        except Exception as error:  # shown by whoever compares
            results[index] = error

    threads = [threading.Thread(target=run, args=(i,))
               for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
