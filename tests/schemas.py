#!/usr/bin/python3
"""Check the JSON Schemas, or JSON Lines against them.

  schemas.py --check formats      the schemas are well formed, and there is
                                  one for everything the tools print
  schemas.py formats < lines      every line is valid; says what is not

Needs python3-jsonschema.
"""

import glob
import json
import os
import re
import sys

import jsonschema

EVENTS = "events.schema.json"


def load(directory):
    """All schemas by file name."""
    schemas = {}
    for path in glob.glob(os.path.join(directory, "*.schema.json")):
        with open(path, encoding="utf-8") as f:
            schemas[os.path.basename(path)] = json.load(f)
    return schemas


def event_types(schemas):
    return set(schemas[EVENTS]["$defs"]["types"]["enum"])


def file_for(schemas, value):
    """The event `file` has a time; a file of trace-dump --files has none."""
    if value["type"] in event_types(schemas) and "time" in value:
        return EVENTS
    return f"{value['type']}.schema.json"


def validator(schemas, name):
    resolver = jsonschema.RefResolver(base_uri=name, referrer=schemas[name],
                                      store=schemas)
    cls = jsonschema.validators.validator_for(schemas[name])
    return cls(schemas[name], resolver=resolver)


def printed_types():
    """Types that occur in the tools' sources."""
    pattern = re.compile(r'"type",\s*tr_json_string\("([a-z]+)"\)')
    types = set()
    for path in glob.glob("cmd/*.c") + glob.glob("cmd/cli/*.c"):
        with open(path, encoding="utf-8") as f:
            types.update(pattern.findall(f.read()))
    return types - {"tool", "option"}  # of --dump-options, which is internal


def declared_event_types():
    with open("libtrace/format/event.h", encoding="utf-8") as f:
        table = f.read().split("TR_EVENT_TYPES(X)")[1].split("enum")[0]
    # Blocks are shown as the memory of the events that have them.
    return set(re.findall(r'X\(\w+, \d+, "(\w+)"', table)) - {"block"}


def declared_fields():
    """JSON names in the tables of fields."""
    with open("libtrace/format/event.h", encoding="utf-8") as f:
        table = f.read().split("TR_SCALAR_FIELDS(X)")[1]
    return set(re.findall(r'X\(\w+, \d+, "(\w+)"', table.split("Structured fields")[0]))


def check(schemas):
    problems = []
    for name, schema in schemas.items():
        try:
            jsonschema.validators.validator_for(schema).check_schema(schema)
        except jsonschema.SchemaError as e:
            problems.append(f"{name}: {e.message}")
    for kind in sorted(printed_types()):
        if f"{kind}.schema.json" not in schemas:
            problems.append(f"no schema for type {kind}")
    if event_types(schemas) != declared_event_types():
        odd = event_types(schemas) ^ declared_event_types()
        problems.append(f"{EVENTS} and event.h differ in: {sorted(odd)}")
    text = json.dumps(schemas[EVENTS])
    for field in sorted(declared_fields()):
        if f'"{field}": {{' not in text:
            problems.append(f"{EVENTS} has no field {field}")
    return problems


def where(error):
    """The deepest error says most."""
    best = error
    while best.context:
        best = max(best.context, key=lambda e: len(e.absolute_path))
    path = "/".join(str(p) for p in best.absolute_path)
    return f"/{path}: {best.message[:300]}"


def check_line(schemas, validators, line):
    value = json.loads(line)
    if not isinstance(value, dict) or next(iter(value), None) != "type":
        return "the first member is not type"
    name = file_for(schemas, value)
    if name not in schemas:
        return f"unknown type {value['type']}"
    if name not in validators:
        validators[name] = validator(schemas, name)
    for error in validators[name].iter_errors(value):
        return where(error)
    return None


def check_lines(schemas, lines):
    problems = []
    validators = {}
    n = 0
    for line in lines:
        n += 1
        try:
            problem = check_line(schemas, validators, line)
        except ValueError as e:
            problem = f"not JSON: {e}"
        if problem:
            problems.append(f"line {n}: {problem}\n  {line.strip()[:500]}")
    if n == 0:
        problems.append("no lines")
    return problems


def main():
    args = sys.argv[1:]
    if len(args) == 2 and args[0] == "--check":
        problems = check(load(args[1]))
    elif len(args) == 1:
        problems = check_lines(load(args[0]), sys.stdin)
    else:
        sys.exit(__doc__)
    for problem in problems[:20]:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
