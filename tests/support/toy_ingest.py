"""`python -m tests.support.toy_ingest …`: what `python -m crag.ingest` does, with toy embeddings.

TOY_DELAY is the number of seconds that a batch takes to embed: a slow server, for tests that interrupt.
"""

import os
import sys
import time
from collections.abc import Sequence

from tests.support.toy import ToyEmbeddings


class SlowEmbeddings(ToyEmbeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        time.sleep(float(os.environ.get("TOY_DELAY", "0")))
        return super().embed_documents(texts)


def main(arguments: Sequence[str]) -> int:
    from crag import ingest
    from crag.knowledge import ingestion as sync

    sync.settings_embeddings = lambda settings: SlowEmbeddings()
    return ingest.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
