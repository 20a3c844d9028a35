"""What CloudFormation makes of Muster's templates."""

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse


class NoManagedPolicies:
    """The names of AWS's own policies are asked of the account; none stands in the template by its name."""

    @staticmethod
    def load():
        return {}


def read(path):
    with open(path, encoding="utf-8") as file:
        return yaml_parse(file.read())


def expanded(path):
    """The resources that SAM makes of the template at `path`."""
    template = read(path)
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            # As `sam package` would leave it.
            resource["Properties"]["CodeUri"] = "s3://bucket/key"
    return transform(template, {}, NoManagedPolicies())["Resources"]
