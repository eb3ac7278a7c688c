#!/bin/sh
# in_golden_data.sh FOLDER PATH… -- COMMAND…
#
# Runs the command in the folder of golden data: the environment variable TAPER_DATA, else FOLDER. Exits with 77, which
# CTest reports as skipped, if one of the paths is not there.
folder=${TAPER_DATA-$1}
shift
while [ "$1" != -- ]; do
  if [ -z "$folder" ] || [ ! -e "$folder/$1" ]; then
    echo "SKIPPED, nothing was compared: golden data '$1' is not there. Set TAPER_DATA to its folder."
    exit 77
  fi
  shift
done
shift
cd "$folder" || exit 1
exec "$@"
