"""What the five servers keep together: a hold for as long as it lasts, and a mark of each name for a day."""

from bench.engines.redis.storage import storage_of
from bench.engines.redlock import ports_of

CONTENDERS = ()
STORAGE = storage_of(lambda target: [f"redis://127.0.0.1:{port}" for port in ports_of(target)], marks="holdfast/marks")
