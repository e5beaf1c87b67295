"""One small request to a model server, and what it says about URL, model, key and the way there."""

import urllib.request
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from crag.aio.calls import within
from crag.base.errors import ModelError
from crag.base.http import NO_KEY, OPENAI_URL, bare_url, host_of, is_loopback
from crag.base.redaction import redact
from crag.models.embeddings import read_vectors
from crag.models.shape import ToldError, completion, words_of
from crag.settings.endpoints import Endpoint, Names, Role

Wrong = Literal["url", "model", "key", "proxy", "certificate", "quota", "server"]


class Finding(NamedTuple):
    """What a probe found: `wrong` is None when all is well."""

    detail: str
    wrong: Wrong | None = None
    remedy: str | None = None


@dataclass(frozen=True)
class Probe:
    """A request to the endpoint of a role; `timeout` in seconds."""

    role: Role
    endpoint: Endpoint
    timeout: float

    @property
    def base_url(self) -> str:
        """Where the requests of this role go."""
        return (self.endpoint.base_url or OPENAI_URL).rstrip("/")

    def run(self) -> Finding:
        """Send it, once. Blocking; raises nothing for what a server or network may do."""
        found = self._run()
        key = self.endpoint.api_key
        secrets = [key.get_secret_value()] if key else []
        return found._replace(detail=redact(found.detail, secrets))

    def _run(self) -> Finding:
        import httpx

        key = self.endpoint.api_key.get_secret_value() if self.endpoint.api_key else NO_KEY
        path, body = self._request()
        try:
            with httpx.Client(timeout=self.timeout, trust_env=not is_loopback(self.base_url)) as client:
                reply = within(
                    self.timeout,
                    lambda: client.post(
                        f"{self.base_url}/{path}", json=body, headers={"Authorization": f"Bearer {key}"}
                    ),
                )
        except (httpx.TimeoutException, TimeoutError):
            return Finding(
                f"no reply within {self.timeout:g} s", "server", "look at the server, or raise CRAG_TIMEOUT"
            )
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            return self._unreachable(error)
        return self._judge(reply)

    def _request(self) -> tuple[str, dict[str, Any]]:
        model = self.endpoint.model
        if self.role == "embedding":
            return "embeddings", {"model": model, "input": ["ok"], "encoding_format": "float"}
        message = {"role": "user", "content": "Reply with the word ok."}
        return "chat/completions", {"model": model, "messages": [message], "max_tokens": 16}

    def _unreachable(self, error: Exception) -> Finding:
        text = " ".join(str(error).split()) or type(error).__name__
        if "CERTIFICATE" in text.upper():
            return Finding(
                f"the server's certificate is not trusted ({text})",
                "certificate",
                "set SSL_CERT_FILE to the certificate of your company or server",
            )
        proxy = proxy_of(self.base_url)
        if proxy:
            return Finding(f"cannot connect through the proxy {proxy} ({text})", "proxy", self._no_proxy())
        name = self._names.base_url
        return Finding(f"cannot connect ({text})", "url", f"check {name} and that the server runs")

    @property
    def _names(self) -> Names:
        """The variables to mend: those that the values came from."""
        return self.endpoint.names or Names.of(self.role)

    def _no_proxy(self) -> str:
        return f"mend HTTPS_PROXY or HTTP_PROXY, or add {urlsplit(self.base_url).hostname} to NO_PROXY"

    def _judge(self, reply: Any) -> Finding:
        status, proxy = reply.status_code, proxy_of(self.base_url)
        said = _message(reply)
        detail = f"HTTP {status}" + (f": {said}" if said else "")
        if status in {407, 502, 503, 504} and proxy:
            return Finding(f"the proxy {proxy} stands between ({detail})", "proxy", self._no_proxy())
        if status in {401, 403}:
            return Finding(detail, "key", f"check {self._names.api_key}")
        if status == 400 and "max_" in said:
            return Finding("answers")  # it wants another name for the limit, which real calls do not send
        if status in {400, 404, 422} and _about_model(said):
            return Finding(detail, "model", f"check {self._names.model}: {self.endpoint.model}")
        if status in {301, 302, 307, 308, 404, 405}:
            return Finding(detail, "url", self._look_at_url())
        if status in {402, 429}:
            return Finding(detail, "quota", "wait, or check your plan")
        if status >= 400:
            return Finding(detail, "server", "look at the server and its log")
        return self._shape(reply)

    def _look_at_url(self) -> str:
        remedy = f"check {self._names.base_url}"
        ends = self.base_url.endswith("/v1")
        return (
            remedy
            if ends
            else f"{remedy}: most servers want it to end in /v1, this is {bare_url(self.base_url)}"
        )

    def _shape(self, reply: Any) -> Finding:
        try:
            body = reply.json()
            if self.role != "embedding":
                completion(body)
                return Finding("answers")
            [vector] = read_vectors(body, 1)
        except ModelError as error:
            detail, _, remedy = str(error).rpartition("; ")
            if isinstance(error, ToldError):
                return Finding(detail, "server", remedy)
            return Finding(detail, "model", f"check {self._names.model}")
        except (ValueError, RecursionError, AttributeError):
            return Finding("the reply is not OpenAI-compatible", "url", self._look_at_url())
        return Finding(f"answers, {len(vector)} dimensions")


def _about_model(said: str) -> bool:
    return "model" in said.lower() or "模型" in said


def _message(reply: Any) -> str:
    """The server's own words, if it speaks JSON."""
    try:
        return words_of(reply.json())[:200]
    except (ValueError, RecursionError):
        return ""


def proxy_of(url: str) -> str | None:
    """Host and port of the proxy that requests to `url` go through; none for this machine's own servers."""
    parts = urlsplit(url)
    if is_loopback(url) or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    proxies = urllib.request.getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    return host_of(found) if found else None
