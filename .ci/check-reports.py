#!/usr/bin/env python3
"""Checks the demo's reports against each other and against the published schema.
usage: check-reports.py demo.sarif demo.json demo.xml  (needs: jsonschema)"""
import json
import os
import sys
import xml.etree.ElementTree

import jsonschema

sarif_path, json_path, junit_path = sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "..", "sarif", "report-v1.schema.json"), encoding="utf-8") as file:
    schema = json.load(file)
jsonschema.Draft202012Validator.check_schema(schema)
with open(json_path, encoding="utf-8") as file:
    report = json.load(file)
with open(sarif_path, encoding="utf-8") as file:
    log = json.load(file)

problems = []
for error in jsonschema.Draft202012Validator(schema).iter_errors(report):
    problems.append(f"{json_path}: /{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}")

(run,) = log["runs"]
if not report["findings"]:
    problems.append(f"{json_path}: the demo is there to show findings, and shows none")
in_json = sorted(finding["rule"] for finding in report["findings"])
in_sarif = sorted(result["ruleId"] for result in run["results"])
if in_json != in_sarif:
    problems.append(f"{sarif_path}: findings differ from {json_path}: {in_sarif} and {in_json}")
main = run["originalUriBaseIds"].keys() - {"COMPANIONS"}
for result in run["results"]:
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    if place["uriBaseId"] not in main:
        problems.append(f"{sarif_path}: {result['ruleId']} is shown outside the main repository: {place}")
here_path = os.path.dirname(here)
for path in (sarif_path, json_path, junit_path):
    with open(path, encoding="utf-8") as file:
        if here_path in file.read():
            problems.append(f"{path}: holds the path of this checkout")
cases = xml.etree.ElementTree.parse(junit_path).getroot().iter("testcase")
if len(list(cases)) != len(report["findings"]) + len(report["gaps"]):
    problems.append(f"{junit_path}: not one test case for each finding and gap")

for problem in problems:
    print(problem)
print(f"{len(problems)} problem(s)")
sys.exit(1 if problems else 0)
