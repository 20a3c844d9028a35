"""The roles with which a workflow and operators work, as an administrator makes them from `infra`."""

import base64
import json

ISSUER = "token.actions.githubusercontent.com"


class Roles:
    """The stack of `infra/deploy-role.yaml` for a stack of Muster; `outputs` are its own."""

    def __init__(self, account, stack):
        self.account, self.stack = account, stack
        # The emulator makes no provider from a template.
        provider = account.client("iam").create_open_id_connect_provider(
            Url=f"https://{ISSUER}", ClientIDList=["sts.amazonaws.com"], ThumbprintList=["0" * 40]
        )
        arn = provider["OpenIDConnectProviderArn"]
        self.outputs = create(
            account,
            f"{stack.name}-roles",
            "deploy-role",
            *("Repository=studio/muster", "Environment=dev", f"StackName={stack.name}", f"ProviderArn={arn}"),
        )

    def assume(self, repository):
        """The environment of a workflow of this repository, which runs in the environment `dev`."""
        claims = {
            "iss": f"https://{ISSUER}",
            "aud": "sts.amazonaws.com",
            "sub": f"repo:{repository}:environment:dev",
        }
        part = lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
        token = f"{part({'alg': 'none'})}.{part(claims)}.{part('unsigned')}"
        made = self.account.client("sts").assume_role_with_web_identity(
            RoleArn=self.outputs["DeployRoleArn"], RoleSessionName="workflow", WebIdentityToken=token
        )
        return keyed(self.account, made["Credentials"])


def create(account, name, template, *parameters):
    """Deploys a template of `infra` as documented; its outputs."""
    file = ["--template-file", f"infra/{template}.yaml", "--capabilities", "CAPABILITY_IAM"]
    account.run(
        "aws", "cloudformation", "deploy", "--stack-name", name, *file, "--parameter-overrides", *parameters
    )
    described = account.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
    return {output["OutputKey"]: output["OutputValue"] for output in described["Outputs"]}


def operators(account, stack):
    """The environments of two users who have a policy of `infra/operator-policy.yaml` each and no other: one
    that operates, and one that only looks."""
    # The emulator's output is the secret's name.
    secrets = account.client("secretsmanager")
    key = secrets.describe_secret(SecretId=stack.outputs["SigningKeySecretArn"])["ARN"]
    outputs = create(
        account,
        f"operators-{stack.name}",
        "operator-policy",
        *(f"StackName={stack.name}", f"SigningKeySecretArn={key}"),
    )
    iam = account.client("iam")

    def user(name, policy):
        iam.create_user(UserName=name)
        iam.attach_user_policy(UserName=name, PolicyArn=outputs[policy])
        return keyed(account, iam.create_access_key(UserName=name)["AccessKey"])

    return user("operator", "OperatorPolicyArn"), user("looker", "LookerPolicyArn")


def keyed(account, keys):
    """The account's environment with these keys."""
    environment = {
        **account.environment,
        "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
    }
    if token := keys.get("SessionToken"):
        environment["AWS_SESSION_TOKEN"] = token
    return environment
