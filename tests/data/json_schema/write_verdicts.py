"""Writes verdicts.json: random schemas, random values, and what jsonschema 4.26 says about them.

    pip install jsonschema==4.26.0
    python3 write_verdicts.py [SEED [SCHEMAS]] > verdicts.json
"""
import json
import random
import sys

from jsonschema import Draft202012Validator

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
count = int(sys.argv[2]) if len(sys.argv) > 2 else 120
draw = random.Random(seed)
KEYS = ["a", "b", "ab", "c"]
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]


def value(depth=0):
    kind = draw.randrange(9 if depth < 2 else 6)
    if kind == 0:
        return None
    if kind == 1:
        return draw.choice([True, False])
    if kind in (2, 3):
        return draw.choice([0, 1, 2, 3, -1, 10, 1.5, 2.0, 0.25, 100, -2.5, 12])
    if kind in (4, 5):
        return draw.choice(["", "a", "b", "ab", "abc", "é", "12", "2024-02-29", 'x"y', "aa"])
    if kind == 6:
        return [value(depth + 1) for _ in range(draw.randrange(4))]
    return {draw.choice(KEYS): value(depth + 1) for _ in range(draw.randrange(4))}


def small():
    return draw.randrange(3)


def keywords(sub):
    """Makes the values of keywords; `sub` makes a schema."""
    schemas = lambda: [sub() for _ in range(draw.randrange(1, 4))]
    return {
        "type": lambda: draw.choice(TYPES) if draw.random() < 0.6 else draw.sample(TYPES, 2),
        "enum": lambda: [value(1) for _ in range(draw.randrange(1, 4))],
        "const": lambda: value(1),
        "minimum": lambda: draw.choice([0, 1, -1, 2.5]),
        "maximum": lambda: draw.choice([0, 1, 10, 2.5]),
        "exclusiveMinimum": lambda: draw.choice([0, 1, -1]),
        "exclusiveMaximum": lambda: draw.choice([0, 1, 10]),
        "multipleOf": lambda: draw.choice([1, 2, 0.5, 0.25]),
        "minLength": small, "maxLength": small, "minProperties": small, "maxProperties": small,
        "minItems": small, "maxItems": small, "minContains": small, "maxContains": small,
        "pattern": lambda: draw.choice(["^a", "b$", "^[ab]+$", "\\d", "a.", "^$", "(a|b){2}"]),
        "properties": lambda: {draw.choice(KEYS): sub() for _ in range(2)},
        "required": lambda: draw.sample(KEYS, draw.randrange(1, 3)),
        "additionalProperties": sub, "propertyNames": sub, "items": sub, "contains": sub,
        "patternProperties": lambda: {draw.choice(["^a", "b", "c$"]): sub()},
        "prefixItems": schemas, "allOf": schemas, "anyOf": schemas, "oneOf": schemas,
        "uniqueItems": lambda: True,
        "not": sub, "if": sub, "then": sub, "else": sub,
        "dependentRequired": lambda: {draw.choice(KEYS): draw.sample(KEYS, 1)},
        "dependentSchemas": lambda: {draw.choice(KEYS): sub()},
        "$ref": lambda: "#/$defs/r",
    }


def schema(depth=0):
    if depth > 0 and draw.random() < 0.12:
        return draw.choice([True, False, True])
    if depth == 3:
        return draw.choice([{"type": "string"}, {"type": "integer"}, True])
    makers = keywords(lambda: schema(depth + 1))
    names = draw.sample(sorted(makers), draw.randrange(1, 5))
    return {name: makers[name]() for name in names}


cases = []
while len(cases) < count:
    candidate = {"$defs": {"r": {"type": draw.choice(["string", "array", "integer"])}}} | schema()
    validator = Draft202012Validator(candidate)
    texts = {True: [], False: []}
    for _ in range(60):
        document = value()
        text = json.dumps(document, ensure_ascii=draw.random() < 0.5, indent=draw.choice([None, 1]))
        texts[validator.is_valid(document)].append(text)
    if len(texts[True]) > 3 and len(texts[False]) > 3:  # a schema that decides something
        longest = lambda verdict: sorted(set(texts[verdict]), key=len)[-4:]
        cases.append({"schema": candidate, "valid": longest(True), "invalid": longest(False)})
print("[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]")
