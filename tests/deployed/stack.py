"""A stack of Muster's template, deployed by SAM from a build of its functions."""

import json
import re
import shutil
import sys
import tarfile
import tomllib

from account import WORKSPACE
from api import Api

sys.path.append(str(WORKSPACE / ".ci"))
import archives

TEMPLATE = (WORKSPACE / "template.yaml").read_text()
# What functions need of their own folders: the name of each in the template, and its binary.
FUNCTIONS = dict(
    re.findall(r"^  (\w+Function):\n(?:    .*\n)+?      CodeUri: functions/(\S+)$", TEMPLATE, re.MULTILINE)
)
# Those that the API calls.
ROUTED = {function: binary for function, binary in FUNCTIONS.items() if binary != "start-server"}
CODE = re.compile(r"^(      CodeUri: )functions/(\S+)$", re.MULTILINE)
CONFIG = tomllib.loads((WORKSPACE / "samconfig.toml").read_text())


class Build:
    """As `sam build` leaves it: the template beside a folder for each function, which holds its
    `bootstrap`."""

    def __init__(self, folder, program):
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        for function, binary in FUNCTIONS.items():
            (folder / function).mkdir(parents=True)
            program(binary, folder / function / "bootstrap")
            (folder / function / "bootstrap").chmod(0o755)
        by_binary = {binary: function for function, binary in FUNCTIONS.items()}
        text, changed = CODE.subn(lambda found: found[1] + by_binary[found[2]], TEMPLATE)
        assert changed == len(FUNCTIONS) > 0, "every function has a folder"
        (folder / "infra").mkdir()
        shutil.copy(WORKSPACE / "infra" / "observability.yaml", folder / "infra")
        self.template = folder / "template.yaml"
        self.template.write_text(text)

    @classmethod
    def of_release(cls, folder, program):
        """As the archive of a release has it: the template beside a ZIP file for each function."""
        shutil.rmtree(folder, ignore_errors=True)
        for binary in FUNCTIONS.values():
            (folder / "binaries" / binary).mkdir(parents=True)
            program(binary, folder / "binaries" / binary / "bootstrap")
        archives.functions(folder, "arm64", folder / "binaries")
        build = cls.__new__(cls)
        build.folder = folder / "muster-aws-arm64"
        with tarfile.open(f"{build.folder}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
        build.template = build.folder / "template.yaml"
        return build

    def package(self, account):
        """Uploads the functions, so that deployments need not do it again."""
        packaged = self.folder / "packaged.yaml"
        options = ["--resolve-s3", "--output-template-file", packaged]
        account.run("sam", "package", "--template-file", self.template, *options)
        # SAM takes no address for one of S3 but S3's own.
        packaged.write_text(
            re.sub(r"(TemplateURL: )\S+", r"\1infra/observability.yaml", packaged.read_text())
        )
        self.template = packaged

    def raise_revision(self, by=1):
        """What an operator does to have a changed parameter take effect."""
        # SAM writes its own YAML, with other quotation marks.
        found = re.findall(r"MUSTER_REVISION: ['\"](\d+)['\"]", self.template.read_text())
        assert len(found) == 1, found
        text = re.sub(r"(MUSTER_REVISION: )\S+", rf'\g<1>"{int(found[0]) + by}"', self.template.read_text())
        self.template.write_text(text)


class Stack:
    def __init__(self, account, stage, build):
        self.account, self.stage, self.build = account, stage, build
        self.name = CONFIG[stage]["global"]["parameters"]["stack_name"]
        # As the operator's command names it.
        self.target = ("--stack", self.name)

    def deploy(self, *options, environment=None, **parameters):
        """`sam deploy` as documented: with the stage's parameters, or with these besides. With another
        environment than the administrator's."""
        listed = CONFIG[self.stage]["deploy"]["parameters"]["parameter_overrides"]
        more = [f"{name}={value}" for name, value in parameters.items()]
        command = ["sam", "deploy", "--config-env", self.stage, "--config-file", WORKSPACE / "samconfig.toml"]
        command += ["--template-file", self.build.template, "--no-confirm-changeset", *options]
        self.said = self.account.run(
            *command,
            *(["--parameter-overrides", *listed, *more] if more else []),
            env=environment or self.account.environment,
        ).stdout
        self.outputs = self.read_outputs()
        self.api = Api(self.account, self.outputs["ApiUrl"])

    def describe(self):
        return self.account.client("cloudformation").describe_stacks(StackName=self.name)["Stacks"][0]

    def read_outputs(self):
        return {output["OutputKey"]: output["OutputValue"] for output in self.describe()["Outputs"]}

    def resources(self):
        """Physical identifiers by logical ones."""
        pages = (
            self.account.client("cloudformation")
            .get_paginator("list_stack_resources")
            .paginate(StackName=self.name)
        )
        listed = (resource for page in pages for resource in page["StackResourceSummaries"])
        return {resource["LogicalResourceId"]: resource["PhysicalResourceId"] for resource in listed}

    def live(self):
        """The version that each function's alias leads to."""
        functions, resources = self.account.client("lambda"), self.resources()
        alias = lambda function: functions.get_alias(FunctionName=resources[function], Name="live")
        return {function: int(alias(function)["FunctionVersion"]) for function in FUNCTIONS}

    def tables(self):
        return {
            key.removesuffix("Name"): name for key, name in self.outputs.items() if key.endswith("TableName")
        }

    def statements(self, function):
        """The statements of a function's own policy, with the role and the policy's name."""
        iam, role = self.account.client("iam"), self.resources()[f"{function}Role"]
        names = iam.list_role_policies(RoleName=role)["PolicyNames"]
        assert len(names) <= 1, names
        for name in names:
            return (
                role,
                name,
                iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]["Statement"],
            )
        return role, None, []


def routes():
    """The function of each route of the OpenAPI document, by method and path."""
    document = json.loads((WORKSPACE / "infra" / "openapi.json").read_text())
    found = {}
    for path, entry in document["paths"].items():
        for method in entry.keys() & {"get", "post", "put", "delete"}:
            name = entry[method]["operationId"]
            found[method.upper(), path] = f"{name[0].upper()}{name[1:]}Function"
    return found
