"""Run with structlog 26.1, python-json-logger 4.2 and loguru 0.7 installed: python python.py KIND > FILE"""
import logging
import sys

kind = sys.argv[1]


def declined():
    raise ValueError("card declined")


def standard(formatter):
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(formatter)
    log = logging.getLogger("shop")
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    log.debug("cache miss", extra={"key": "user:7"})
    log.info("listening", extra={"port": 3000})
    log.warning("slow query", extra={"ms": 812.5})
    try:
        declined()
    except ValueError:
        log.exception("payment failed", extra={"order": "o-17"})


if kind == "logging":
    standard(logging.Formatter("%(asctime)s - %(name)s - %(levelname)s - %(message)s"))
if kind == "basic":
    standard(logging.Formatter(logging.BASIC_FORMAT))
if kind == "python-json-logger":
    from pythonjsonlogger.json import JsonFormatter

    standard(JsonFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
if kind == "structlog":
    import structlog

    processors = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(),
    ]
    structlog.configure(processors=processors)
    log = structlog.get_logger()
    log.debug("cache miss", key="user:7")
    log.info("listening", port=3000)
    log.warning("slow query", ms=812.5)
    try:
        declined()
    except ValueError:
        log.exception("payment failed", order="o-17")
if kind == "loguru":
    from loguru import logger

    logger.remove()
    logger.add(sys.stdout, serialize=True)
    logger.debug("cache miss")
    logger.info("listening", port=3000)
    logger.warning("slow query")
    try:
        declined()
    except ValueError:
        logger.bind(order="o-17").exception("payment failed")
