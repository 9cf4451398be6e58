"""The logs of a night in which a migration held a lock: gateway, application, database."""
import json
import random
from collections import Counter
from datetime import datetime, timedelta

from projects import Faults, commit, git

BEGIN = datetime(2026, 11, 21, 22, 0, 0)
LOCKED, RELEASED = datetime(2026, 11, 22, 2, 13, 47), datetime(2026, 11, 22, 2, 31, 12)
HOLDER = 18843
PATHS = ["/", "/cart", "/search", "/article", "/login", "/checkout", "/static/app.js", "/api/stock"]


def night():
    """The lines of the three logs, and the right answers: the same at each run."""
    dice = random.Random(20261121)
    gateway, app, db = [], [], []
    others, kinds, customers = Counter(), Counter(), Counter()
    failed, blocked = [], 0
    now = BEGIN

    def log_app(at, level, message, **fields):
        app.append(json.dumps({"time": at.isoformat(timespec="milliseconds") + "Z", "level": level, "msg": message, **fields}))
        if level == "error":
            kinds[fields["code"]] += 1

    def log_db(at, pid, severity, text):
        db.append(f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d} UTC [{pid}] {severity}:  {text}")

    log_db(BEGIN, 611, "LOG", "checkpoint starting: time")
    while now < BEGIN + timedelta(hours=9):
        now += timedelta(milliseconds=dice.randint(150, 1100))
        path, customer, status = dice.choice(PATHS), dice.randint(1, 900), 200
        pid, request = dice.randint(20000, 29999), f"{dice.getrandbits(48):012x}"
        locked = LOCKED <= now < RELEASED
        if path == "/checkout" and locked and now > LOCKED + timedelta(seconds=9):
            customer = 417 if dice.random() < 0.3 else customer
            if dice.random() < 0.6:
                blocked += 1
                log_db(now, pid, "ERROR", "canceling statement due to lock timeout")
                log_db(now, pid, "CONTEXT", f"while updating tuple ({dice.randint(0, 90)},{dice.randint(1, 60)}) in relation \"orders\"")
                log_db(now, pid, "STATEMENT", f"UPDATE orders SET state = 'paid' WHERE id = {dice.randint(1, 10**6)}")
                log_app(now, "error", f"order {dice.randint(1, 10**6)} not saved: canceling statement due to lock timeout",
                        code="LOCK_TIMEOUT", customer=customer, request=request)
            else:
                customers[customer] += 1
                log_app(now, "error", f"no connection within {dice.randint(5000, 5090)} ms (20 of 20 in use)",
                        code="POOL_TIMEOUT", customer=customer, request=request)
            status = dice.choice([500, 503, 504])
            failed.append(now)
        elif dice.random() < 0.0015:
            status = dice.choice([500, 502])
            if path == "/checkout":
                status = 200
            else:
                others[path] += 1
                log_app(now, "error", f"upstream stock-{dice.randint(1, 3)} closed the connection", code="UPSTREAM", request=request)
        elif path == "/search" and dice.random() < 0.02:
            log_app(now, "warn", f"search took {dice.randint(2000, 4000)} ms", customer=customer, request=request)
        elif path == "/login" and dice.random() < 0.05:
            status = 401
            log_app(now, "warn", "wrong password", customer=customer, request=request)
        else:
            log_app(now, "info", "answered", path=path, customer=customer, request=request, ms=dice.randint(2, 90))
        if dice.random() < 0.001:
            log_app(now, "error", "mail not sent: 451 try again later", code="MAIL", customer=customer)
        query = f"?id={dice.randint(1, 5000)}" if path in ("/article", "/search", "/api/stock") else ""
        gateway.append(
            f'10.0.{dice.randint(0, 3)}.{dice.randint(1, 250)} - - [{now:%d/%b/%Y:%H:%M:%S} +0000] '
            f'"{"POST" if path in ("/checkout", "/login") else "GET"} {path}{query} HTTP/1.1" {status} {dice.randint(90, 9000)} "-" '
            f'"Mozilla/5.0 (X11; Linux x86_64)"')
        if now.second == 0 and dice.random() < 0.4:
            log_db(now, 611, "LOG", f"checkpoint complete: wrote {dice.randint(10, 900)} buffers ({dice.random():.1f}%)")
    found = [
        (LOCKED, f"LOG:  duration: 8021.113 ms  statement: CREATE INDEX orders_by_state ON orders (state)", 18790),
        (LOCKED + timedelta(seconds=1, milliseconds=12), "LOG:  process 20412 still waiting for RowExclusiveLock on relation 16412 of database 16384 after 1000.108 ms", 20412),
        (LOCKED + timedelta(seconds=1, milliseconds=12), f"DETAIL:  Process holding the lock: {HOLDER}. Wait queue: 20412, 20977.", 20412),
        (RELEASED, "ERROR:  canceling statement due to user request", HOLDER),
        (RELEASED, "STATEMENT:  ALTER TABLE orders ALTER COLUMN total TYPE numeric(12,2)", HOLDER),
    ]
    db += [f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d} UTC [{pid}] {text}" for at, text, pid in found]
    db.sort(key=lambda line: line[:23])
    return gateway, app, db, {
        "first": f"{failed[0]:%H:%M:%S}", "last": f"{failed[-1]:%H:%M:%S}", "failed": len(failed), "other_5xx": dict(others),
        "error_kinds": dict(kinds), "table": "orders", "pid": HOLDER, "statement": "ALTER TABLE ORDERS", "blocked": blocked,
        "customer": customers.most_common(1)[0][0],
    }


def prepare(folder):
    gateway, app, db, _ = night()
    for name, lines in (("gateway/access.log", gateway), ("app/app.log", app), ("db/postgresql.log", db)):
        (folder / name).parent.mkdir()
        (folder / name).write_text("\n".join(lines) + "\n")
    commit(folder, "The logs of the night")


def check(folder):
    faults = Faults()
    try:
        answers = json.loads((folder / "answers.json").read_text())
    except (OSError, ValueError) as error:
        return Faults([f"answers.json: {error}"])
    for key, right in night()[3].items():
        given = answers.get(key)
        faults.unless(str(given) == str(right) or given == right, f"{key} is {given!r} instead of {right!r}")
    report = (folder / "report.md").read_text() if (folder / "report.md").exists() else ""
    faults.unless(report and len(report.splitlines()) <= 10, "report.md is missing or longer than ten lines")
    faults.unless(not git(folder, "diff", "--name-only", "HEAD"), "the logs were changed")
    return faults
