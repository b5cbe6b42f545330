# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Checks paths that root may write to or read settings from; sourced by site.sh. In a directory that others can change, a link would
# redirect root's writes.

# One line that says why FILE or DIRECTORY is not safe; nothing when it is. Its own part of the path must not be a symbolic link.
unsafe_why() {  # PATH
  local owner mode
  if [ -L "$1" ]; then printf '%s is a symbolic link' "$1"; return; fi
  read -r owner mode < <(stat -c '%u %a' -- "$1" 2>/dev/null) || { printf '%s cannot be looked at' "$1"; return; }
  if [ "$owner" -ne 0 ] && [ "$owner" -ne "$(id -u)" ]; then
    printf '%s belongs to %s' "$1" "$(stat -c %U -- "$1")"
  elif (((8#$mode & 8#022) != 0)) && { [ ! -d "$1" ] || [ "${2:-}" != above ] || (((8#$mode & 8#1000) == 0)); }; then
    printf '%s can be written by others' "$1"
  fi
}

# The same of a directory and of all those above it, where a sticky one (/tmp) is as good as one that others cannot write. What is not
# there yet is safe when it can be made in a safe place.
unsafe_directory_why() {  # DIRECTORY
  local at=$1 why=''
  while [ ! -e "$at" ] && [ ! -L "$at" ] && [ "$at" != / ]; do at=$(dirname -- "$at"); done
  if [ "$at" = "$1" ]; then why=$(unsafe_why "$at"); else why=$(unsafe_why "$(realpath -- "$at")" above); fi
  at=$(realpath -- "$at" 2>/dev/null) || at=/
  while [ -z "$why" ] && [ "$at" != / ]; do
    at=$(dirname -- "$at")
    why=$(unsafe_why "$at" above)
  done
  printf '%s' "$why"
}

# Makes DIRECTORY if need be; fails, with one line, where it is not safe.
safe_directory() {  # SETTING DIRECTORY
  local why
  why=$(unsafe_directory_why "$2")
  if [ -z "$why" ] && (umask go-w && mkdir -p -- "$2") 2>/dev/null; then why=$(unsafe_directory_why "$2"); elif [ -z "$why" ]; then why="cannot make $2"; fi
  if [ -z "$why" ]; then return 0; fi
  printf '%s: %s: %s\n' "${0##*/}" "$1" "$why" >&2
  return 1
}
