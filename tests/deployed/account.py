"""An AWS account on the loopback interface: MiniStack, which judges every call by IAM, over Amazon's DynamoDB
Local."""

import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request

import boto3

WORKSPACE = pathlib.Path(__file__).absolute().parent.parent.parent
REGION = "eu-central-1"
# A host name of the studio's own for the API.
HOST = "api.studio.example"
# How long anything here may take to become what it is waited for to be.
PATIENCE = 60


def until(what, true, patience=PATIENCE):
    """Waits until `true()` is, and returns it."""
    end = time.monotonic() + patience
    while not (found := true()):
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {patience} s")
        time.sleep(0.1)
    return found


class Account:
    """Ends with the block that it is used in; its files are in `folder`."""

    def __init__(self, folder, python, keeps_items):
        self.folder, self.python, self.keeps_items = folder, python, keeps_items
        self.processes = []
        # The permissions boundary of functions, once an administrator has made it.
        self.boundary = None
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        self.endpoint = f"https://127.0.0.1:{self.port}"
        self.certificate, self.key = folder / "certificate.pem", folder / "key.pem"
        # Nothing of this machine's own account: the administrator's key is the emulator's.
        self.environment = {
            "PATH": f"{python.parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "TMPDIR": str(folder / "tmp"),
            "LANG": "C.UTF-8",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_CA_BUNDLE": str(self.certificate),
            "SSL_CERT_FILE": str(self.certificate),
            "AWS_EC2_METADATA_DISABLED": "true",
            "SAM_CLI_TELEMETRY": "0",
            # Seconds from one look at what it waits for to the next; of itself it takes five.
            "SAM_CLI_POLL_DELAY": "1",
        }

    def __enter__(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "tmp").mkdir(parents=True)
        try:
            self.make_certificate()
            self.start_emulator(self.start_database() if self.keeps_items else None)
        except BaseException:
            self.__exit__()
            raise
        self.tls = ssl.create_default_context(cafile=self.certificate)
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait(PATIENCE)

    def make_certificate(self):
        """Of this address, and of the APIs that are deployed."""
        names = f"subjectAltName=IP:127.0.0.1,DNS:*.execute-api.{REGION}.amazonaws.com,DNS:{HOST}"
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        command += ["-subj", "/CN=muster-deployed", "-addext", names]
        command += ["-addext", "basicConstraints=critical,CA:FALSE"]
        subprocess.run(
            [*command, "-keyout", self.key, "-out", self.certificate], check=True, capture_output=True
        )

    def start_database(self):
        """Amazon's DynamoDB Local; its address."""
        log = (self.folder / "dynamodb.log").open("w")
        command = [WORKSPACE / ".ci" / "dynamodb-local"]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        self.processes.append(process)
        port = process.stdout.readline().strip()
        assert port, "DynamoDB Local did not start"
        return f"127.0.0.1:{port}"

    def start_emulator(self, database):
        environment = {
            "PATH": os.environ["PATH"],
            "TMPDIR": str(self.folder / "tmp"),
            "GATEWAY_PORT": str(self.port),
            "BIND_HOST": "127.0.0.1",
            # In the addresses of queues.
            "MINISTACK_HOST": "127.0.0.1",
            "MINISTACK_REGION": REGION,
            "USE_SSL": "true",
            "MINISTACK_SSL_CERT": str(self.certificate),
            "MINISTACK_SSL_KEY": str(self.key),
            "AUTH": "true",
            # Neither is asked anything, and both listen on every interface.
            "IOT_MTLS_ENABLED": "false",
            "SFTP_ENABLED": "false",
        }
        if database:
            environment["DYNAMODB_LOCAL"] = database
        self.log = self.folder / "emulator.log"
        program = pathlib.Path(__file__).with_name("emulator.py")
        output = {"stdin": subprocess.PIPE, "stdout": self.log.open("w"), "stderr": subprocess.STDOUT}
        process = subprocess.Popen([self.python, program], env=environment, **output)
        self.processes.append(process)
        until("the emulator listens", lambda: process.poll() is not None or self.is_healthy())
        assert process.poll() is None, self.log.read_text()[-4000:]

    def is_healthy(self):
        try:
            trusted = ssl.create_default_context(cafile=self.certificate)
            with urllib.request.urlopen(f"{self.endpoint}/_ministack/health", context=trusted) as answer:
                return answer.status == 200
        except urllib.error.URLError:
            return False

    def client(self, service):
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": REGION}
        return boto3.client(service, endpoint_url=self.endpoint, verify=str(self.certificate), **keys)

    def run(self, *command, check=True, **more):
        """Runs a program as an administrator of the account would; its output, without colours."""
        options = {"env": self.environment, "cwd": WORKSPACE, "text": True, "stdin": subprocess.DEVNULL}
        if "input" in more:
            del options["stdin"]
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        done = subprocess.run([str(word) for word in command], **{**options, **output, **more})
        if check and done.returncode != 0:
            raise RuntimeError(
                f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-6000:]}\n{done.stderr or ''}"
            )
        return done
