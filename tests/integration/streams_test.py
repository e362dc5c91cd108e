#!/usr/bin/env python3
"""What surrounds a command may go wrong at any time: standard streams that are
closed, full or no longer read, and interrupts in every phase."""
import fcntl
import itertools
import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import termios
import time

import cluster


def catches(pid, number):
    """Whether the process has its handler for the signal."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            for line in file:
                if line.startswith("SigCgt:"):
                    return int(line.split()[1], 16) >> (number - 1) & 1
    except OSError:
        pass
    return False


class Terminal:
    """A command on a terminal of its own; ended with the test."""

    def __init__(self, test, *arguments):
        self.ahead = b""
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            os.execv(cluster.programs()[0],
                     [cluster.programs()[0], *arguments])
        test.addCleanup(self.close)

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.end)

    def type(self, keys):
        os.write(self.end, keys)

    def look(self):
        """Takes what is there into self.ahead."""
        if select.select([self.end], [], [], 0)[0]:
            self.ahead += os.read(self.end, 4096)

    def read_some(self):
        """Waits for visible characters, which stay to be read."""
        def found():
            self.look()
            return self.ahead.strip()
        cluster.wait_for(found, "something on the terminal")

    def read_until(self, word):
        """What is shown, up to the word."""
        def found():
            if word not in self.ahead:
                self.look()
            return word in self.ahead
        cluster.wait_for(found, f"{word} on the terminal")
        seen, _, self.ahead = self.ahead.partition(word)
        return seen

    def wait(self):
        """The exit code."""
        def ended():
            pid, state = os.waitpid(self.pid, os.WNOHANG)
            return (os.waitstatus_to_exitcode(state),) if pid else None
        code, = cluster.wait_for(ended, "the end")
        self.pid = 0
        return code


class StreamsTest(cluster.ModelTest):
    def shell(self, script, *arguments):
        """A shell runs the script, where $M is the program."""
        return subprocess.run(
            ["bash", "-c", script, "bash", *arguments], capture_output=True,
            text=True, timeout=120, check=False,
            env={**os.environ, "M": cluster.programs()[0]})

    def start(self, *arguments, **options):
        """A command with pipes for its streams; ended with the test."""
        process = subprocess.Popen(
            [cluster.programs()[0], *arguments], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            **options)

        def end():
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                stream.close()
        self.addCleanup(end)
        # With no pause: what is sent then arrives while the model is loaded.
        deadline = time.monotonic() + cluster.PATIENCE
        while not catches(process.pid, signal.SIGINT):
            self.assertLess(time.monotonic(), deadline,
                            "SIGINT is not caught")
        return process

    def test_progress_names_what_is_measured(self):
        """Loads that differ look different."""
        shown = Terminal(self, "bench", "prefill", self.model, "--prompt-len",
                         "8,20", "--repeat", "1")
        shown.read_until(b"measuring prefill: batch 1, prompt 8,")
        shown.read_until(b"measuring prefill: batch 1, prompt 20,")
        self.assertEqual(shown.wait(), 0)

    def test_output_that_cannot_be_written(self):
        run = "$M run $1 --prompt Hi --max-tokens 400 --ignore-eos"
        for command in ("$M inspect $1", "$M inspect $1 --json", run,
                        f"{run} --json", "$M tokenize $1 --text a",
                        "$M eval $1 --tokens 1,2,3"):
            with self.subTest(command=command):
                full = self.shell(f"{command} > /dev/full", self.model)
                self.assertEqual(full.returncode, 1)
                self.assertIn("error: stdout: cannot be written: No space left",
                              full.stderr)
                closed = self.shell(f"{command} >&-", self.model)
                self.assertEqual(closed.returncode, 1)
                self.assertIn("error: stdout: cannot be written: Bad file",
                              closed.stderr)
                gone = self.shell(
                    f"{{ sleep 0.1; {command}; echo $? >&2; }} | true",
                    self.model)
                self.assertEqual(gone.stderr, "1\n")
        for option in ("--help", "--version"):
            done = self.shell(f"$M {option} > /dev/full")
            self.assertEqual(done.returncode, 1)
            self.assertIn("error: stdout", done.stderr)

    def test_reader_that_goes_away(self):
        """A generation ends with its reader, quietly, and says so by its exit
        code; the tiny model could go on for thousands of tokens."""
        process = self.start("run", self.model, "--prompt", "Hi",
                             "--max-tokens", "4000", "--ignore-eos")
        process.stdin.close()
        process.stdout.close()
        self.assertEqual(process.wait(timeout=cluster.PATIENCE), 1)
        self.assertEqual(process.stderr.read(), "")

    def test_interrupt_while_nobody_reads_the_output(self):
        """A reader that is there, but has stopped reading."""
        def filled(stream):
            there = fcntl.ioctl(stream, termios.FIONREAD, bytes(4))
            return int.from_bytes(there, sys.byteorder)

        for command in (("run", self.model, "--prompt", "Hi", "--max-tokens",
                         "4000", "--ignore-eos"),
                        ("inspect", self.model, "--tensors", "--json")):
            with self.subTest(command=command):
                process = self.start(*command, pipesize=4096)

                def stuck(stream=process.stdout):
                    before = filled(stream)
                    time.sleep(0.3)
                    return 0 < before == filled(stream)
                cluster.wait_for(stuck, "waiting for room in the pipe")
                self.assertIsNone(process.poll())
                process.send_signal(signal.SIGINT)
                self.assertIn(process.wait(timeout=20), (1, 130))

    def test_closed_input(self):
        for command in ("$M run $1", "$M tokenize $1"):
            done = self.shell(f"{command} <&-", self.model)
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertIn("stdin: cannot be read", done.stderr)

    def test_server_without_streams(self):
        """No socket or pipe of the server takes the place of what was closed:
        it serves, and stays."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        for streams in ("<&- >&- 2>&-", "<&- >&-", "2>&-"):
            with self.subTest(streams=streams):
                server = subprocess.Popen(
                    ["bash", "-c", f"exec $0 serve $1 --port {port} {streams}",
                     cluster.programs()[0], self.model],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                self.addCleanup(server.wait)
                self.addCleanup(server.kill)
                client = cluster.Client(f"http://127.0.0.1:{port}")

                def ready():
                    try:
                        return client.get("/ready")[0] == 200
                    except OSError:
                        self.assertIsNone(server.poll(), "the server ended")
                        return False
                cluster.wait_for(ready, "readiness")
                self.assertTrue(client.chat("Hi", 8))
                self.assertIsNone(server.poll())
                server.terminate()
                self.assertEqual(server.wait(timeout=cluster.PATIENCE), 0)

    def test_interrupts_before_and_while_input_is_awaited(self):
        moments = [k / 1000 for k in range(30)] + [0.3]  # loading takes 10 ms
        for command, number, pause in itertools.product(
                ("run", "tokenize", "chat"), (signal.SIGINT, signal.SIGTERM),
                moments):
            with self.subTest(command=command, signal=number, pause=pause):
                process = self.start(command, self.model)
                time.sleep(pause)
                process.send_signal(number)
                self.assertEqual(process.wait(timeout=cluster.PATIENCE), 130)
                self.assertEqual(process.stdout.read(), "")

    def test_interrupt_of_a_worker_that_dials(self):
        """A coordinator that takes connections and says nothing: the worker
        ends all the same."""
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            process = self.start(
                "stage-worker", "--coordinator",
                f"127.0.0.1:{silent.getsockname()[1]}", "--json")
            connection, _ = silent.accept()
            with connection:
                process.send_signal(signal.SIGTERM)
                # Not only when gRPC gives up after its 20 s.
                self.assertEqual(process.wait(timeout=15), 0)

    def test_interrupted_chat_keeps_its_session(self):
        session = os.path.join(self.folder.name, "talk.json")
        process = self.start("chat", self.model, "--max-tokens", "6", "--json",
                             "--session", session)
        process.stdin.write("Hello\n")
        process.stdin.flush()
        self.assertEqual(json.loads(process.stdout.readline())["event"],
                         "answer")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=cluster.PATIENCE), 130)
        with open(session, encoding="utf-8") as file:
            self.assertEqual(len(json.load(file)["messages"]), 2)

    def test_interrupt_right_behind_an_answer(self):
        """It is for the program, which has nothing else to stop: nobody types
        again on a pipe."""
        process = self.start("chat", self.model, "--max-tokens", "6", "--json")
        process.stdin.write("Hello\n")
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=cluster.PATIENCE), 130)

    def test_session_survives_a_kill(self):
        session = os.path.join(self.folder.name, "killed.json")
        process = self.start("chat", self.model, "--max-tokens", "6", "--json",
                             "--session", session)
        for turn in (1, 2):
            process.stdin.write("Hello\n")
            process.stdin.flush()
            process.stdout.readline()

            def saved(messages=2 * turn):
                with open(session, encoding="utf-8") as file:
                    return len(json.load(file)["messages"]) == messages
            cluster.wait_for(saved, "saving")  # behind the answer
        process.kill()
        process.wait()

    def test_session_that_cannot_be_kept(self):
        """It is said before anything is loaded or typed."""
        done = self.shell("$M chat $1 --session /no/such/folder/talk.json",
                          self.model)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/no/such/folder/talk.json: creating failed", done.stderr)
        self.assertNotIn("Type a message", done.stderr)

    def test_chat_on_a_terminal(self):
        """Ctrl-C at the prompt drops the line, and the next answer is made;
        SIGTERM and Ctrl-D end the program."""
        for last, code in ((b"\x04", 0), (signal.SIGTERM, 130)):
            with self.subTest(last=last):
                terminal = Terminal(self, "chat", self.model, "--max-tokens",
                                    "4", "--ignore-eos")
                terminal.read_until(b"> ")
                terminal.type(b"never sent\x03")
                terminal.read_until(b"> ")
                terminal.type(b"/nonsense\r")
                self.assertNotIn(b"never sent",
                                 terminal.read_until(b"is no command"))
                terminal.read_until(b"> ")
                terminal.type(b"Hello\r")
                terminal.read_until(b"> ")  # behind the answer
                if last == signal.SIGTERM:
                    os.kill(terminal.pid, last)
                else:
                    terminal.type(last)
                self.assertEqual(terminal.wait(), code)

    def test_interrupt_of_an_answer_on_a_terminal(self):
        """Ctrl-C stops the answer, not the program; the session has what was
        shown of it."""
        session = os.path.join(self.folder.name, "stopped.json")
        terminal = Terminal(self, "chat", self.model, "--max-tokens", "4000",
                            "--ignore-eos", "--session", session)
        terminal.read_until(b"> ")
        terminal.type(b"Hello\r")
        terminal.read_until(b"Hello\r\n")
        terminal.read_some()
        terminal.type(b"\x03")
        shown = terminal.read_until(b"stopped")
        terminal.read_until(b"> ")
        terminal.type(b"/quit\r")
        self.assertEqual(terminal.wait(), 0)
        with open(session, encoding="utf-8") as file:
            question, answer = json.load(file)["messages"]
        self.assertEqual(question, {"role": "user", "content": "Hello"})
        self.assertEqual(answer["role"], "assistant")
        words = answer["content"].split()
        self.assertTrue(words)
        # The terminal drops what it had not shown yet when Ctrl-C is typed.
        before = shown.decode(errors="replace").partition("^C")[0].split()
        self.assertTrue(before)
        self.assertTrue(words[0].startswith(before[0]), (words[0], before[0]))


if __name__ == "__main__":
    cluster.main()
