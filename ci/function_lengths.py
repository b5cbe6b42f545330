#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the functions of C++ sources whose body has more than 60 lines.

    ci/function_lengths.py FILE...
"""
import re
import sys

MOST = 60
# What may hold braces that open nothing: comments, strings, characters, preprocessor lines.
BLIND = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\''
                   r'|^[ \t]*#(?:\\\n|[^\n])*', re.DOTALL | re.MULTILINE)
SCOPE = re.compile(r'\s*(?:template\s*<[^{]*>\s*)?(?:inline\s+|static\s+)?(?:namespace|class|struct|union|enum|extern)\b')


def long_functions(text):
    """Yields the line on which a function begins, and the lines between its braces."""
    text = BLIND.sub(lambda blind: ' ' + '\n' * blind.group().count('\n'), text)
    blocks, head, line, begin = [], '', 1, 1  # a block: is it a scope, its first line, the line of its brace
    for c in text:
        if c == '{':
            in_scope = not blocks or blocks[-1][0]
            blocks.append((in_scope and bool(SCOPE.match(head)), in_scope and '(' in head, begin, line))
        elif c == '}' and blocks:
            _, function, first, opened = blocks.pop()
            if function and line - opened - 1 > MOST:
                yield first, line - opened - 1
        if c in '{};':
            head = ''
        elif head or not c.isspace():
            begin = begin if head else line
            head += c
        line += c == '\n'


for path in sys.argv[1:]:
    with open(path, encoding='utf-8') as source:
        for first, lines in long_functions(source.read()):
            print(f'{path}:{first}: a function of {lines} lines, more than {MOST}')
