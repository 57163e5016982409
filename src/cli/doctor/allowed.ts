import { isPrivilegeLacking, sqlState } from '../../store/connection/sql-errors.ts';

/** What is read; or `otherwise` where this role lacks a privilege for that, which the line about rights names. */
export async function ifAllowed<T, Otherwise>(
  reading: Promise<T>,
  otherwise: Otherwise,
): Promise<T | Otherwise> {
  try {
    return await reading;
  } catch (error) {
    if (isPrivilegeLacking(sqlState(error))) return otherwise;
    throw error;
  }
}
