#!/usr/bin/env python3
"""The contract of the command line: exit codes, the two forms of an error,
options from files and the environment, and what is refused by name."""
import json
import os
import platform
import re
import socket

import cluster


class CommandsTest(cluster.ModelTest):
    def refused(self, code, word, *arguments):
        """Exit code, and an error in both forms that holds the word."""
        done = self.run_millrace(*arguments, "--json")
        self.assertEqual(done.returncode, code, done.stderr)
        error = json.loads(done.stdout.splitlines()[-1])["error"]
        self.assertEqual(set(error), {"code", "message", "object", "hint"})
        self.assertIn(word, f"{error['message']} {error['hint']}")
        self.assertIn("millrace: error: ", done.stderr)

    def test_usage_errors(self):
        # Kernels of the other kind of processor.
        absent = "avx2" if platform.machine() == "aarch64" else "neon"
        for word, arguments in (
                ("--nonsense", ["run", self.model, "--nonsense"]),
                ("--stages", ["run", self.model, "--stages", "1001"]),
                ("--stages", ["run", self.model, "--stages", "7", "--prompt",
                              "x"]),
                ("--cuts", ["run", self.model, "--cuts", "3,2"]),
                ("--cuts: a stage cannot begin at layer 9",
                 ["run", self.model, "--cuts", "1,2,3,4,5,6,7,8,9",
                  "--tokens", "1"]),
                *(("0 is out of range", ["run", self.model, option, "0",
                                         "--tokens", "1"])
                  for option in ("--stages", "--threads", "--chunk",
                                 "--context", "--concurrency",
                                 "--max-tokens")),
                ("no token ids", ["run", self.model, "--tokens", ""]),
                ("empty", ["run", self.model, "--raw", "--prompt", ""]),
                ("no token ids", ["eval", self.model, "--tokens", ""]),
                ("--cuts", ["eval", self.model, "--cuts", "9", "--tokens",
                            "1,2"]),
                ("--context", ["run", self.model, "--context", "99999",
                               "--prompt", "x"]),
                ("--temperature", ["run", self.model, "--temperature", "-1",
                                   "--prompt", "x"]),
                ("--memory", ["serve", self.model, "--memory", "lots"]),
                ("--max-tokens", ["run", self.model, "--tokens", "1",
                                  "--max-tokens", "5000"]),
                ("token", ["run", self.model, "--tokens", "1,99999"]),
                *((f"{flag}: goes without --tokens",
                   ["run", self.model, "--tokens", "1", flag])
                  for flag in ("--raw", "--parse-special")),
                ("--parse-special: goes without --raw",
                 ["run", self.model, "--prompt", "x", "--raw",
                  "--parse-special"]),
                ("rdma", ["run", self.model, "--transport", "rdma"]),
                (f"this host has no {absent.upper()}",
                 ["run", self.model, "--kernels", absent]),
                ("int8", ["run", self.model, "--kv", "int4"]),
                ("--cluster", ["plan", self.model]),
                ("--html", ["plan", self.model, "--html", "-"]),
                ("--html", ["plan", self.model, "--single-node", "--memory",
                            "1GB", "--html", "x"]),
                ("--cluster", ["plan", "--costs", "x"]),
                ("--memory", ["plan", self.model, "--single-node"]),
                ("--single-node", ["plan", self.model, "--memory", "1GB"]),
                *((f"goes without {other[0]}",
                   ["plan", self.model, "--single-node", "--memory", "1GB",
                    *other])
                  for other in (["--cluster", "x"], ["--objective", "nodes"],
                                ["--placement", "interleaved"],
                                ["--workers", "127.0.0.1:1"],
                                ["--verify", "http://127.0.0.1:1"])),
                ("--verify", ["plan", self.model, "--verify", ""]),
                ("streamed", ["plan", self.model, "--cluster", "x",
                              "--placement", "streamed", "--verify",
                              "http://127.0.0.1:1"]),
                ("beauty", ["plan", self.model, "--cluster", "x",
                            "--objective", "beauty"]),
                ("--insecure", ["serve", self.model, "--host", "0.0.0.0"]),
                ("--insecure", ["coordinator", self.model, "--control",
                                "0.0.0.0:0", "--workers", "1", "--http",
                                "127.0.0.1:0"]),
                ("--insecure", ["stage-worker", "--coordinator",
                                "192.0.2.1:7000"]),
        ):
            with self.subTest(arguments=arguments[0:3]):
                self.refused(2, word, *arguments)

    def test_odd_values(self):
        """What is no decimal number, an empty value, or a list with a hole is
        refused by the option's name, never read as something near it."""
        run = ["run", self.model, "--tokens", "1"]
        for word, arguments in (
                *(("--max-tokens", [*run, f"--max-tokens={text}"])
                  for text in ("0x10", " 5", "5 ", "+5", "1e3", "5.0", "1_0",
                               "\u0663", "\uff15", "--", "-", "nan",
                               "9223372036854775808")),
                *(("--seed", [*run, f"--seed={text}"])
                  for text in ("18446744073709551616", "0x1", "1.5",
                               "-9223372036854775809")),
                *(("--temperature", [*run, f"--temperature={text}"])
                  for text in ("nan", "inf", "-inf", "0x1p-1", " 1", "+1", "1,5",
                               "1e999")),
                *(("--port", ["serve", self.model, f"--port={text}"])
                  for text in ("65536", "-1", "0x50", "http", "8080.0")),
                *((f"{option}: is empty", [*run, option, ""])
                  for option in ("--memory", "--cuts", "--kv", "--kernels",
                                 "--transport", "--prompt-file", "--config",
                                 "--max-tokens", "--temperature")),
                ("is empty", ["inspect", ""]),
                ("is empty", ["run", "", "--tokens", "1"]),
                *(("a comma stands", ["run", self.model, "--tokens", text])
                  for text in ("1,,2", "1,2,", ",1", ",", "1, ,2")),
                ("a comma stands", ["eval", self.model, "--tokens", "1,,2"]),
                ("a comma stands", ["tokenize", self.model, "--decode",
                                    "1,,2"]),
                ("a comma stands", ["run", self.model, "--cuts", "1,,2",
                                    "--tokens", "1"]),
                ("no rising list", ["run", self.model, "--cuts", " ",
                                    "--tokens", "1"]),
        ):
            with self.subTest(arguments=arguments):
                self.refused(2, word, *arguments)
        # Leading zeros are no octal numbers, and white space is fine in lists.
        done = self.run_millrace("run", self.model, "--tokens", "1, 2 3",
                                 "--max-tokens", "010", "--ignore-eos",
                                 "--json")
        result = json.loads(done.stdout)
        self.assertEqual(result["prompt_tokens"], 3)
        self.assertEqual(len(result["tokens"]), 10)
        # Both spellings of the same 64 bits.
        seeds = [self.run_millrace(*run, "--temperature", "1", "--max-tokens",
                                   "20", "--ignore-eos", f"--seed={seed}",
                                   "--json").stdout
                 for seed in ("-1", "18446744073709551615")]
        self.assertEqual(*(json.loads(out)["tokens"] for out in seeds))

    def test_context_beyond_the_model(self):
        """A plan for what no command would run names the model's length."""
        nodes = os.path.join(self.folder.name, "nodes.yaml")
        with open(nodes, "w", encoding="utf-8") as file:
            file.write("version: 1\nnodes: [{name: a, memory: 1GB}]\n")
        plan = ["plan", self.model, "--cluster", nodes]
        for arguments in (["--context", "4097"], ["--context", "64,4097"],
                          ["--prompt-len", "4000", "--output-len", "97"]):
            with self.subTest(arguments=arguments):
                self.refused(2, "4097 is more than the 4096", *plan, *arguments)
        self.refused(2, "0 is out of range", *plan, "--context", "64,0")
        self.refused(2, "a comma stands", *plan, "--context", "64,,128")
        done = self.run_millrace(*plan, "--context", "64,4096", "--json")
        self.assertEqual([entry["context"] for entry
                          in json.loads(done.stdout)["concurrency"]], [64, 4096])

    def test_inspect_shows_what_text_needs(self):
        """Tokenizer and template are made, not only found: a damaged one is
        named without --verify, beside what is whole."""
        text = self.run_millrace("inspect", self.model).stdout
        self.assertRegex(text, r"tokenizer +gguf gpt2, .*, 4096 tokens\n")
        self.assertRegex(text, r"template +\d+ bytes\n")
        with open(self.model, "rb") as file:
            whole = file.read()
        broken = os.path.join(self.folder.name, "broken-template.gguf")
        with open(broken, "wb") as file:
            file.write(whole.replace(b"{% for", b"{% fir"))
        for options in ([], ["--verify"]):
            done = self.run_millrace("inspect", broken, *options, "--json")
            self.assertEqual(done.returncode, 3, done.stderr)
            report = json.loads(done.stdout)
            self.assertIn("line 1", report["chat_template"]["error"])
            self.assertIsNone(report["tokenizer"]["error"])
            self.assertIn("chat template", done.stderr)
        done = self.run_millrace("inspect", broken)
        self.assertRegex(done.stdout, r"template .*; damaged: ")
        self.refused(4, "chat template", "run", broken, "--tokens", "1")

    def test_input_errors(self):
        missing = os.path.join(self.folder.name, "missing.gguf")
        broken = os.path.join(self.folder.name, "broken.gguf")
        with open(broken, "wb") as file:
            file.write(b"GGUF\3\0\0\0")
        text = os.path.join(self.folder.name, "model.txt")
        with open(text, "w", encoding="utf-8") as file:
            file.write("no model")
        for path in (missing, broken, text):
            for command in (["run", path, "--prompt", "x"], ["inspect", path],
                            ["eval", path, "--tokens", "1,2"],
                            ["serve", path], ["up", path, "--stages", "1"],
                            ["chat", path], ["tokenize", path, "--text", "x"]):
                with self.subTest(command=command[0], path=path):
                    self.refused(4, os.path.basename(path), *command)

    def test_template_without_end(self):
        """A chat template that passes a limit is an input that cannot be
        used."""
        path = os.path.join(self.folder.name, "endless.jinja")
        with open(path, "w", encoding="ascii") as file:
            file.write("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}")
        messages = os.path.join(self.folder.name, "messages.json")
        with open(messages, "w", encoding="ascii") as file:
            file.write('{"messages": []}')
        self.refused(4, "endless.jinja", "render", "--template", path,
                     "--input", messages)

    def test_nothing_scored(self):
        """One token has no predecessor: no mean is invented for it."""
        done = self.run_millrace("eval", self.model, "--tokens", "5", "--json")
        result = json.loads(done.stdout)
        self.assertEqual(result["scored"], 0)
        self.assertIsNone(result["nll"])
        self.assertIsNone(result["perplexity"])
        text = self.run_millrace("eval", self.model, "--tokens", "5").stdout
        self.assertIn("scored 0\nnll none\nperplexity none\n", text)

    def test_one_is_no_plural(self):
        """A single thing of each kind, wherever people read of it."""
        nodes = os.path.join(self.folder.name, "single.yaml")
        plan = os.path.join(self.folder.name, "single.json")
        with open(nodes, "w", encoding="utf-8") as file:
            file.write("version: 1\nnodes: [{name: a, memory: 1GB, "
                       "memory_bandwidth: 1GB/s, compute: {default: 1e12}}]\n")
        single = cluster.make_model(self.folder.name, "--layers", "1",
                                    name="single.gguf")
        shown = ""
        for code, arguments in (
                (0, ["plan", single, "--cluster", nodes, "--concurrency", "1",
                     "--out", plan]),
                (0, ["plan", single, "--cluster", nodes, "--context", "1"]),
                (0, ["simulate", plan, "--concurrency", "1", "--requests", "1",
                     "--input-len", "4", "--output-len", "2"]),
                (0, ["inspect", single, "--verify"]),
                (0, ["run", single, "--tokens", "1", "--max-tokens", "1"]),
                (2, ["run", single, "--tokens", "1", "--stages", "2"]),
                (2, ["run", single, "--tokens", "1", "--context", "1"]),
                (2, ["eval", single, "--tokens", "1", "--window", "2"]),
                (3, ["serve", single, "--memory", "1MB", "--concurrency", "1",
                     "--context", "1"])):
            with self.subTest(arguments=arguments):
                done = self.run_millrace(*arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                shown += done.stdout + done.stderr
        self.assertIn("1 sequence of ", shown)
        self.assertIn("a model of 1 layer\n", shown)
        self.assertEqual(
            re.findall(r"(?<![.\d])1 (?:[a-z-]+ )?(?:layers|nodes|sequences|"
                       r"tokens|stages|requests|threads|tensors|rows|"
                       r"micro-batches)\b", shown), [])

    def test_keys_from_a_pipe(self):
        """`--api-key-file <(command)`: the keys need not stand in a file."""
        end, begin = os.pipe()
        server = cluster.Process(self, "serve", self.model, "--port", "0",
                                 "--json", "--api-key-file", f"/dev/fd/{end}",
                                 pass_fds=[end])
        os.close(end)
        with os.fdopen(begin, "w") as file:
            file.write("# of a vault\nsk-piped\n")
        client = cluster.Client(server.event("ready")["url"])
        self.assertEqual(client.get("/v1/models")[0], 401)
        client.key = "sk-piped"
        self.assertEqual(client.get("/v1/models")[0], 200)
        self.assertEqual(server.stop(), 0)

    def test_addresses_are_named_by_their_option(self):
        """What a coordinator has in one option is not blamed on two others."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            in_use = "127.0.0.1:%d" % taken.getsockname()[1]
            base = ["coordinator", self.model, "--control", "127.0.0.1:0",
                    "--workers", "1"]
            for address in ("0.0.0.0:0", "no.such.host.invalid:80", in_use,
                            "nowhere"):
                with self.subTest(address=address):
                    self.refused(2, "--http: ", *base, "--http", address)
        self.refused(2, "--control: nowhere", "coordinator", self.model,
                     "--workers", "1", "--control", "nowhere")
        here = ["--coordinator", "127.0.0.1:1"]
        for arguments in (["--coordinator", "nowhere"],
                          [*here, "--listen", "nowhere"],
                          [*here, "--control", "nowhere"],
                          [*here, "--control", "0.0.0.0:0"]):
            with self.subTest(arguments=arguments):
                self.refused(2, f"{arguments[-2]}: {arguments[-1]}",
                             "stage-worker", *arguments)

    def test_answer_is_no(self):
        nodes = os.path.join(self.folder.name, "small.yaml")
        with open(nodes, "w", encoding="utf-8") as file:
            file.write("version: 1\nnodes: [{name: a, memory: 1MB}]\n")
        done = self.run_millrace("plan", self.model, "--cluster", nodes,
                                 "--json")
        self.assertEqual(done.returncode, 3)
        plan = json.loads(done.stdout.splitlines()[0])
        self.assertFalse(plan["fits"])
        self.assertEqual(plan["route"], [])
        self.assertEqual(plan["stages"], [])
        self.assertIn("fit", plan["verdict"])
        self.refused(3, "--memory", "serve", self.model, "--memory", "1MB")

    def test_options_from_environment_and_file(self):
        """The command line wins; a file's keys may stand in a section of the
        command; what is no option is refused by name."""
        base = ["run", self.model, "--prompt", "Hi", "--ignore-eos", "--json"]
        environment = {**os.environ, "MILLRACE_MAX_TOKENS": "3"}
        done = self.run_millrace(*base, env=environment)
        self.assertEqual(len(json.loads(done.stdout)["tokens"]), 3)
        done = self.run_millrace(*base, "--max-tokens", "5", env=environment)
        self.assertEqual(len(json.loads(done.stdout)["tokens"]), 5)
        config = os.path.join(self.folder.name, "options.ini")
        with open(config, "w", encoding="utf-8") as file:
            file.write("max-tokens=4\n")
        done = self.run_millrace(*base, "--config", config)
        self.assertEqual(len(json.loads(done.stdout)["tokens"]), 4)
        done = self.run_millrace(*base, "--config", config, "--max-tokens=2")
        self.assertEqual(len(json.loads(done.stdout)["tokens"]), 2)
        with open(config, "w", encoding="utf-8") as file:
            file.write("[run]\nmax-tokens=6\nignore-eos=true\n"
                       "[serve]\nport=1\n")
        done = self.run_millrace("run", self.model, "--prompt", "Hi", "--json",
                                 f"--config={config}")
        self.assertEqual(len(json.loads(done.stdout)["tokens"]), 6)
        # A word that also says yes or no is a text where one is asked for, and
        # a flag can be switched off.
        with open(config, "w", encoding="utf-8") as file:
            file.write("prompt=true\nraw=true\nmax-tokens=1\njson=false\n")
        done = self.run_millrace("run", self.model, "--config", config)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("{", done.stdout)
        true = self.run_millrace("run", self.model, "--raw", "--prompt", "true",
                                 "--max-tokens", "1")
        self.assertEqual(done.stdout, true.stdout)
        with open(config, "w", encoding="utf-8") as file:
            file.write("max-tokkens=6\n")
        self.refused(2, config, "run", self.model, "--prompt", "Hi",
                     "--config", config)
        # JSON is no such file; CLI11 would read nothing of it and say nothing.
        for text in ('{"max-tokens": 6}', ' \n{"run": {"max-tokens": 6}}',
                     '["max-tokens", 6]', "{"):
            with open(config, "w", encoding="utf-8") as file:
                file.write(text)
            self.refused(4, "is JSON", "run", self.model, "--prompt", "Hi",
                         "--config", config)
        wrong = {**os.environ, "MILLRACE_THREADS": "many"}
        done = self.run_millrace(*base, env=wrong)
        self.assertEqual(done.returncode, 2)
        self.assertIn("MILLRACE_THREADS", done.stderr)
        self.refused(4, "gone.ini", "run", self.model, "--prompt", "Hi",
                     "--config", "gone.ini")

    def test_servers_look_before_they_load(self):
        """What is wrong with the listener is said before the model is read."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = str(taken.getsockname()[1])
            for command in (["serve", self.model],
                            ["up", self.model, "--stages", "1"]):
                for code, word, options in (
                        (2, "Address already in use", ["--port", port]),
                        (4, "gone.keys", ["--api-key-file", "gone.keys"]),
                        (4, "gone.pem", ["--tls-cert", "gone.pem", "--tls-key",
                                         "gone.pem"]),
                        (2, "--insecure", ["--host", "0.0.0.0"])):
                    with self.subTest(command=command[0], options=options):
                        self.refused(code, word, *command, *options)
                        done = self.run_millrace(*command, *options)
                        self.assertNotIn("is ready", done.stderr)

    def test_a_file_that_is_no_model_has_a_remedy(self):
        path = os.path.join(self.folder.name, "noise.gguf")
        with open(path, "wb") as file:
            file.write(bytes(range(1, 201)))
        done = self.run_millrace("run", path, "--prompt", "x")
        self.assertEqual(done.returncode, 4)
        self.assertIn("noise.gguf", done.stderr)
        self.assertIn("hint: give a GGUF file", done.stderr)

    def test_unknown_command(self):
        self.refused(2, "is no command", "rum", self.model)
        self.refused(2, "not in this version", "import", self.model)

    def test_help_and_version(self):
        done = self.run_millrace("--version")
        self.assertEqual(done.returncode, 0)
        for word in ("millrace ", "commit ", "scalar"):
            self.assertIn(word, done.stdout)
        listed = self.run_millrace("--help").stdout
        for command in ("run", "chat", "serve", "up", "coordinator",
                        "stage-worker", "plan", "inspect", "tokenize", "render",
                        "eval", "bench", "probe"):
            self.assertIn(command, listed)
            done = self.run_millrace(command, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("Example", done.stdout)

    def test_chat_reads_lines(self):
        """A conversation through a pipe, saved and gone on with."""
        session = os.path.join(self.folder.name, "talk.json")
        for turn in (1, 2):
            done = self.run_millrace(
                "chat", self.model, "--max-tokens", "6", "--session", session,
                input="Hello\n/image x\n")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("/image", done.stderr)
            with open(session, encoding="utf-8") as file:
                messages = json.load(file)["messages"]
            self.assertEqual([m["role"] for m in messages],
                             ["user", "assistant"] * turn)


if __name__ == "__main__":
    cluster.main()
