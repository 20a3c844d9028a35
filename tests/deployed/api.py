"""The deployed HTTP API, at the host of the output `ApiUrl`."""

import http.client
import json
import urllib.parse


class Api:
    def __init__(self, account, url):
        self.account, self.url = account, url
        self.host = urllib.parse.urlsplit(url).hostname

    def connection(self):
        tls = self.account.tls
        return http.client.HTTPSConnection("127.0.0.1", self.account.port, timeout=60, context=tls)

    def send(self, method, path, body=None, token=None, headers=None):
        """One request: status, headers in lower case, body."""
        connection = self.connection()
        sent = {
            "host": self.host,
            **({"authorization": f"Bearer {token}"} if token else {}),
            **(headers or {}),
        }
        connection.request(method, path, None if body is None else json.dumps(body), sent)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content

    def try_(self, method, path, body=None, token=None, headers=None):
        """One request: the status, and the body as JSON."""
        status, _, content = self.send(method, path, body, token, headers)
        return status, json.loads(content or b"null")

    def ask(self, method, path, body=None, token=None, headers=None):
        """One request that succeeds: its body."""
        status, answer = self.try_(method, path, body, token, headers)
        assert status == 200, f"{method} {path} was answered {status}: {answer}"
        return answer

    def code(self, method, path, body=None, token=None, headers=None):
        """One request: `OK`, or the code of its refusal."""
        status, answer = self.try_(method, path, body, token, headers)
        return "OK" if status == 200 else f"{status} {(answer or {}).get('code') or answer}"
