/** The functions behind the fences of users' tables; the room that writes the triggers keeps them, and checks that they are as here. */
export { FENCE_FUNCTIONS_SQL as sql } from '../../../fence/index.js';
